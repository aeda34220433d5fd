"""What the heartbeat of this process still has to do, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from remit_gates._heartbeat import HEARTBEAT
from tests.waiting import PATIENCE


def jobs_of(keeper: Any) -> list[Any]:
    """The claims of `keeper` that are renewed, and the ends of its runs that are still to be
    written down."""
    owners = [getattr(job, "__self__", job) for job in list(HEARTBEAT._due)]
    return [owner for owner in owners if getattr(owner, "_keeper", None) is keeper]


@contextmanager
def no_other_jobs() -> Iterator[None]:
    """Without what earlier tests have left to be done, which is forgotten. It is what a forked
    child does, with a thread that has to be told besides."""
    wake, thread = HEARTBEAT._wake, HEARTBEAT._thread
    HEARTBEAT.reset()
    with wake:
        wake.notify_all()
    if thread is not None:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    yield
