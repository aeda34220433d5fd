"""How far a run has come, as an operator sees it: one pure function of what a store tells."""

from __future__ import annotations

import enum

from remit_gates._model import Record, Snapshot


class RunPhase(str, enum.Enum):
    """How far a run has come at its gate. Closed: a caller may match on every member.

    Attributes:
        RUNNING: A live claim: a delivery is being served.
        ABANDONED: A claim whose lease is over or whose holder is known to be dead: how far
            its run got is not known.
        FAILED: No claim, and the work of the last one is unfinished.
        SETTLED: No claim, and nothing unfinished: the run finished, waits, or was released.
    """

    RUNNING = "running"
    ABANDONED = "abandoned"
    FAILED = "failed"
    SETTLED = "settled"

    @property
    def claimed(self) -> bool:
        """Whether the runs in this phase are those with a claim."""
        return self in (RunPhase.RUNNING, RunPhase.ABANDONED)


def phase(snapshot: Snapshot, *, dead: bool = False) -> RunPhase:
    """The phase of the run that `snapshot` is of.

    Args:
        snapshot: What the store told.
        dead: Whether the holder of its claim is known to be dead.
    """
    record = snapshot.record
    if record.claim is None:
        return RunPhase.FAILED if _unfinished(record) else RunPhase.SETTLED
    left = snapshot.lease_left
    live = not dead and left is not None and left > 0
    return RunPhase.RUNNING if live else RunPhase.ABANDONED


def _unfinished(record: Record) -> bool:
    """Whether the last claim of `record`, which is over, left work behind."""
    if record.unfinished:
        return True
    # A claim that went on without an answer leaves no consumption, and then nothing of its
    # work can have been released either.
    return bool(record.left) and record.by_token(record.served) is None
