"""What a delivery is, judged from the open instance, the row on record and the record of
the run; purely.

CrewAI deletes its row of a pause before the first listener runs. As long as the row of a
pause is there, nothing has run for that pause, whatever became of who held it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from remit_gates._digest import digest
from remit_gates._model import Answer, Consumption, Delivery, Holder, Intent, Reason, Record
from remit_gates._policy import Policy


CHECKPOINT: Final = "checkpoint:"
"""How the name of a checkpoint begins where it stands for a pause."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call of `resume`, as far as the open instance and its arguments tell.

    Attributes:
        run: The flow id.
        pause: The pause that the instance waits at.
        answer: The feedback.
        ticket: The pause that `remit_ticket` names, if there is one.
        delivery: `remit_delivery`.
        actor: `remit_actor`.
    """

    run: str
    pause: str
    answer: Any
    ticket: str | None = None
    delivery: str | None = None
    actor: str | None = None

    @property
    def named(self) -> str:
        """The pause that the answer is for."""
        return self.ticket or self.pause


def pause_of(context: Any) -> str:
    """The name of the pause that CrewAI describes by `context`. One run has one row, and
    no pause has an id; but no two pauses were asked for at the same microsecond."""
    return f"{context.method_name}@{context.requested_at.isoformat()}"


def judge(
    request: Request, waiting: str | None, record: Record, holder: Holder, policy: Policy
) -> Delivery:
    """What the call that `request` describes comes to, while `waiting` is on record."""
    pause = request.named
    reason = None
    if waiting != pause:
        reason = _gone(request, waiting, record, policy)
    elif request.pause != pause:
        # The ticket is good, but the instance was loaded for an earlier pause.
        reason = Reason.SUPERSEDED
    return Delivery(
        intent=Intent.ANSWER,
        holder=holder,
        answers=(Answer(pause, digest(request.answer, request.run, pause)),),
        # The open instance names its pause, so that it answers no other.
        bound=True,
        id=request.delivery,
        actor=request.actor,
        reason=reason,
    )


def _gone(request: Request, waiting: str | None, record: Record, policy: Policy) -> Reason | None:
    """Why an answer to a pause whose row is gone is void; None where an instance that is
    still open may answer it once more."""
    entry = record.consumption(request.named)
    free = waiting is None and request.pause == request.named
    if entry is not None and in_doubt(record, entry):
        if policy.on_abandoned == "refuse":
            return Reason.ABANDONED
        if free:
            return None
    elif entry is not None and entry.reopened == "again" and free:
        return None
    if request.ticket is not None:
        return Reason.STALE_TICKET if entry is None else Reason.NOT_PARKED
    return Reason.NOT_PARKED if waiting is None or entry is not None else Reason.SUPERSEDED


def in_doubt(record: Record, entry: Consumption) -> bool:
    """Whether a claim that never ended worked on `entry`."""
    return record.claim is not None and entry in record.unfinished


def last_answered(record: Record) -> Consumption | None:
    """The last pause of the run that was answered."""
    for entry in reversed(record.consumptions):
        if not entry.pause.startswith(CHECKPOINT):
            return entry
    return None


def judge_restored(checkpoint: str, holder: Holder) -> Delivery:
    """What the first kickoff of a flow that was restored from `checkpoint` comes to."""
    answers = (Answer(CHECKPOINT + checkpoint),)
    return Delivery(intent=Intent.ANSWER, holder=holder, answers=answers, bound=True)


def judge_kickoff(holder: Holder) -> Delivery:
    """What a kickoff of a run by its id comes to."""
    return Delivery(intent=Intent.START, holder=holder, bound=True)
