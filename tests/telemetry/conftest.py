"""What the telemetry tests share; they need OpenTelemetry's SDK."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.telemetry.recording import Recording

if importlib.util.find_spec("opentelemetry") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def recording() -> Iterator[Recording]:
    """An application that records; not instrumented yet."""
    from tests.telemetry.recording import Recording

    recording = Recording()
    yield recording
    recording.close()
