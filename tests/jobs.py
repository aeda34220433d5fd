"""What the heartbeat of this process still has to do, and for whom."""

from __future__ import annotations

import math
from typing import Any

from remit_gates._heartbeat import HEARTBEAT
from tests.waiting import until


def jobs_of(keeper: Any) -> list[Any]:
    """The claims of `keeper` that are renewed, and the ends of its runs that are still to be
    written down."""
    owners = [getattr(job, "__self__", job) for job in list(HEARTBEAT._due)]
    return [owner for owner in owners if getattr(owner, "_keeper", None) is keeper]


def forget_all() -> None:
    """Have the heartbeat forget what earlier tests left to be done, and wait for what it is
    just doing."""
    for job in list(HEARTBEAT._due):
        HEARTBEAT.remove(job)
    # Only while it sleeps is it known until when.
    until(
        lambda: HEARTBEAT._thread is None or HEARTBEAT._sleeps_until != -math.inf,
        "the heartbeat to come to rest",
    )
