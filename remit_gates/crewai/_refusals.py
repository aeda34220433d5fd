"""What a refused caller of CrewAI gets. Where CrewAI itself says with a `ValueError` that
nothing waits, so does the gate: who caught that catches this."""

from __future__ import annotations

from typing import Final

from remit_gates import errors
from remit_gates._model import Reason
from remit_gates._passage import Denied
from remit_gates._refusal import Verbs, refusal
from remit_gates.errors import ResumeRefused


class AlreadyConsumed(errors.AlreadyConsumed, ValueError):
    """Raised when the pause was answered before; `consumption` says by whom and when."""


class Abandoned(errors.Abandoned, ValueError):
    """Raised when the holder died after CrewAI had given the pause up, and the policy is
    to ask a person."""


class NotParked(errors.NotParked, ValueError):
    """Raised when the flow does not wait for this answer."""


_KINDS: Final[dict[Reason, type[ResumeRefused]]] = {
    Reason.CONSUMED: AlreadyConsumed,
    Reason.FAILED: AlreadyConsumed,
    Reason.ABANDONED: Abandoned,
    Reason.NOT_PARKED: NotParked,
}

VERBS: Final = Verbs(
    ask="call from_pending(flow_id)",
    fork="call kickoff(restore_from_state_id=flow_id)",
    failed=(
        "CrewAI has given the pause up, so it cannot be answered again. Mend the cause, then"
        " kickoff(inputs={'id': flow_id}) runs the flow anew on its last saved state."
    ),
    abandoned=(
        "CrewAI has given the pause up, so it cannot be loaded again. Look at what was done,"
        " then kickoff(inputs={'id': flow_id}) runs the flow anew on its last saved state; or"
        " release() re-opens the claim, for an instance that was loaded before."
    ),
)


def refused(denied: Denied) -> ResumeRefused:
    """The exception that says why `denied` was denied."""
    return refusal(denied, VERBS, _KINDS)


def released(denied: Denied) -> ResumeRefused:
    """What says of a released pause that CrewAI cannot load it any more."""
    entry = denied.verdict.consumption
    named = "" if entry is None else f" (pause {entry.pause})"
    return NotParked(
        f"{denied.run} was released{named}, but only its claim is open again: CrewAI's own row"
        " of the pause is gone, since it was deleted before the first listener. Nothing ran."
        " Answer it on an instance that was loaded before, or kickoff(inputs={'id': flow_id})"
        " to run the flow anew on its last saved state.",
        reason=Reason.NOT_PARKED,
        run=denied.run,
        consumption=entry,
    )
