"""A run under a claim, from its first line to its last: what it comes to, and how whoever
is called within it finds its claim."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from crewai.flow.async_feedback.types import HumanFeedbackPending

from remit_gates._claim import ActiveClaim
from remit_gates._drive import adrive
from remit_gates._keeper import Keeper
from remit_gates._model import Outcome
from remit_gates._ops import Flow
from remit_gates._port import StorePort
from remit_gates.crewai._pauses import CHECKPOINT, pause_of
from remit_gates.errors import ClaimLost


class Entry:
    """What the gate knows of one run under a claim, from its first line to its last.

    Attributes:
        claim: The claim.
        committed: Whether CrewAI has given the pause up, so that listeners may run.
        ended: Whether the run has ended. A task that it left behind may still see it.
        lost: The error of a write that came too late. CrewAI may put another around it.
    """

    __slots__ = ("claim", "committed", "ended", "lost")

    def __init__(self, claim: ActiveClaim) -> None:
        self.claim = claim
        self.committed = False
        self.ended = False
        self.lost: ClaimLost | None = None

    def fence(self) -> None:
        """Return only while the claim is held.

        Raises:
            ClaimLost: It is not, or that cannot be known.
        """
        try:
            self.claim.check()
        except ClaimLost as error:
            self.lost = error
            raise


entered: Final[ContextVar[Entry | None]] = ContextVar("remit_gates_crewai", default=None)
"""The run in whose context the caller is."""


def entry_of(run: Any) -> Entry | None:
    """The entry of `run`, for whoever is called within it."""
    entry = entered.get()
    if entry is None or entry.ended or entry.claim.run.run != str(run):
        return None
    return entry


async def under(
    admitting: Flow[Entry],
    keeper: Keeper,
    port: StorePort,
    call: Callable[[], Any],
    after: Callable[[], None] = lambda: None,
) -> Any:
    """What `call` returns, run under the claim that is admitted.

    Raises:
        ResumeRefused: There is none; nothing was called.
    """
    entry = await adrive(admitting, port)
    token = entered.set(entry)
    try:
        result = await call()
    except BaseException as error:
        await adrive(keeper.dismiss(entry.claim, _failure(entry, error)), port)
        if entry.lost not in (None, error) and isinstance(error, Exception):
            raise entry.lost from error
        raise
    else:
        await adrive(keeper.dismiss(entry.claim, _outcome(result)), port)
        return result
    finally:
        entry.ended = True
        after()
        entered.reset(token)


def _failure(entry: Entry, error: BaseException) -> Outcome | None:
    """What a run that ended with `error` comes to: nothing, if its pause waits still."""
    answers = entry.claim.passage.delivery.answers
    kept = any(answer.pause.startswith(CHECKPOINT) for answer in answers) or not answers
    if not entry.committed and not kept:
        return None
    return Outcome("failed", detail=type(error).__name__)


def _outcome(result: Any) -> Outcome:
    if isinstance(result, HumanFeedbackPending):
        return Outcome("parked", waiting=(pause_of(result.context),))
    return Outcome("finished")
