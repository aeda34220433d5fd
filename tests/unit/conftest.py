"""A ledger and a world for each test."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.worlds import Ledger, World


# A busy machine is no reason to fail: no test here is about how long anything takes.
settings.register_profile(
    "unit", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def world() -> World:
    return World()
