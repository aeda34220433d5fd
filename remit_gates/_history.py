"""What a record tells an auditor: each attempt at each pause, who was behind it and what
became of it. Looking changes nothing, and nothing is told that the record does not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from remit_gates._model import Consumption, Continuation, Holder, Outcome, Snapshot


@dataclass(frozen=True, slots=True)
class Release:
    """The release of an attempt, after which its pause could be answered again.

    Attributes:
        at: When, in seconds since the epoch by the store's clock.
        actor: Who released it, when that was said.
        reason: Why, when that was said.
    """

    at: float
    actor: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One go at one pause. All times are in seconds since the epoch by the store's clock.

    Attributes:
        pause: The pause; empty for a released claim that had answered none.
        attempt: 1 for the first at this pause, then one more for each. A number that is
            missing was forgotten: a record keeps a bounded number of earlier attempts.
        token: Fencing token of its claim.
        state: `running`; `abandoned`, when nobody wrote down how it ended; else how it
            ended.
        actor: Who answered, when that was said.
        delivery: The delivery id of the answer, when it had one.
        digest: Digest of the answer; None where it has no canonical form.
        answer: The answer as JSON text; None unless the policy was to record answers.
        answered: When the answer was taken.
        continued: The delivery that went on with that answer in this attempt; None for
            the attempt that took it.
        holder: Which process served it.
        since: When the attempt began.
        until: When it ended; None where that is not known.
        position: Where the run then stood, in the framework's words.
        error: Type of the error of an attempt that failed.
        release: Its release by an operator.
    """

    pause: str
    attempt: int
    token: int
    state: Literal["running", "abandoned", "finished", "parked", "failed"]
    actor: str | None
    delivery: str | None
    digest: str | None
    answer: str | None = field(repr=False)
    answered: float
    continued: Continuation | None
    holder: Holder
    since: float
    until: float | None
    position: str | None
    error: str | None
    release: Release | None


def attempts(snapshot: Snapshot, *, dead: bool = False) -> tuple[Attempt, ...]:
    """All attempts that the record remembers, in the order in which they began.

    Args:
        snapshot: What the store knows of the run.
        dead: Whether the holder of the active claim is known to be dead.
    """
    record = snapshot.record
    entries = sorted((*record.earlier, *record.consumptions), key=lambda entry: entry.token)
    texts = {_given(entry): entry.answer for entry in entries if entry.answer is not None}
    active = record.claim
    lives = not dead and (snapshot.lease_left or 0.0) > 0
    running = active.token if active is not None and lives else None
    return tuple(
        _attempt(entry, running, entry.answer or texts.get(_given(entry))) for entry in entries
    )


def _given(entry: Consumption) -> tuple[str, int, float]:
    """What names the answer that `entry` works on, the same for all who went on with it."""
    return entry.pause, entry.generation, entry.since


def _attempt(entry: Consumption, running: int | None, answer: str | None) -> Attempt:
    outcome = entry.outcome or Outcome("failed")
    state: Literal["running", "abandoned", "finished", "parked", "failed"]
    until, error, release = entry.until, None, None
    if entry.outcome is None:
        state = "running" if entry.token == running else "abandoned"
    elif outcome.state == "released":
        state = "abandoned" if outcome.ended is None else "failed"
        until, error = outcome.ended, outcome.error
        release = Release(entry.until or 0.0, outcome.actor, outcome.detail)
    else:
        state, error = outcome.state, outcome.detail
    return Attempt(
        pause=entry.pause,
        attempt=entry.attempt,
        token=entry.token,
        state=state,
        actor=entry.actor,
        delivery=entry.delivery,
        digest=entry.digest,
        answer=answer,
        answered=entry.since,
        continued=entry.continued,
        holder=entry.holder,
        since=entry.since if entry.continued is None else entry.continued.since,
        until=until,
        position=outcome.position,
        error=error,
        release=release,
    )
