"""Every error that remit-gates raises, in one tree.

No message holds an answer's text or a credential; each says what happened, to which
run and pause, what was not done, and what to do next.

    RemitError
    ├── ResumeRefused       the delivery was not served; no node, task or tool ran
    │   ├── InProgress      409  another delivery holds the run now
    │   ├── AlreadyConsumed 409  the pause was answered before
    │   ├── Abandoned       409  its holder died, and the policy is to ask a person
    │   ├── StaleTicket     410  the ticket names a pause that no longer waits
    │   ├── NotParked       409  nothing waits for this answer
    │   └── Superseded      409  the run went on to something else
    ├── ClaimLost           the holder was replaced, or cannot prove that it was not
    ├── OutcomeUnknown      the swap may or may not have landed
    ├── InvalidState        a state does not fit `validate=`; it was not persisted
    ├── StoreError
    │   ├── StoreUnavailable 503  the store could not be reached
    │   ├── SchemaMismatch        the table or a record is of a newer release
    │   ├── SetupRequired         the table is not there yet
    │   └── StoreMisconfigured    the store's settings can lose an acknowledged claim
    └── UsageError
        ├── MissingExtra          an optional dependency is not installed
        ├── UnsupportedVersion    the framework's version is not one we can gate
        └── GateNotEngaged        the hook into the framework did not run
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar


if TYPE_CHECKING:
    from remit_gates._model import Claim, Consumption, Outcome, Reason, RunKey


class RemitError(Exception):
    """Raised when remit-gates cannot do what was asked; the base of all its errors.

    Attributes:
        definite: Whether the claim certainly did not land because of this error. Where
            it is False, re-reading the record tells.
    """

    definite: ClassVar[bool] = True


class ResumeRefused(RemitError):
    """Raised when a delivery is not served. No node, task, method or tool ran for it.

    Attributes:
        reason: Why, as a member of the closed enum `Reason`.
        run: The run it was for.
        pauses: The pauses that it would have answered.
        claim: The claim that stands in its way, if one does.
        consumption: The consumption that stands in its way, if one does.
        retry_after: Seconds after which asking again may be answered differently; None
            where waiting changes nothing.
        receipt: What the effects of the answer returned, in the framework's own form, when
            they are done and the run can go on without them; else None.
        http_status: The status that an HTTP handler should answer with.
    """

    http_status: ClassVar[int] = 409
    receipt: Any = None

    def __init__(
        self,
        message: str,
        *,
        reason: Reason,
        run: RunKey,
        pauses: tuple[str, ...] = (),
        claim: Claim | None = None,
        consumption: Consumption | None = None,
        retry_after: float | None = None,
        same_answer: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.run = run
        self.pauses = pauses
        self.claim = claim
        self.consumption = consumption
        self.retry_after = retry_after
        self._same_answer = same_answer

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is rebuilt from its arguments alone, and the state set after that:
        # what a refusal needs besides its message would be missing in another process.
        return _blank, (type(self), self.args), self.__dict__


def _blank(kind: type[ResumeRefused], args: tuple[Any, ...]) -> ResumeRefused:
    return kind.__new__(kind, *args)


class InProgress(ResumeRefused):
    """Raised when another delivery is being served on the run right now."""

    @property
    def same_answer(self) -> bool | None:
        """Whether this delivery's answer equals the one that is being served, by digest;
        None where that is not known."""
        return self._same_answer


class AlreadyConsumed(ResumeRefused):
    """Raised when the pause was answered before; `consumption` says by whom and when.

    Attributes:
        tickets: What waits now, for a delivery that waited and that would have been served
            as if it had been first, had the run not parked again; empty elsewhere.
    """

    tickets: tuple[Any, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the run that took the answer failed."""
        return self.reason.value == "failed"

    @property
    def same_answer(self) -> bool | None:
        """Whether this delivery's answer equals the one that was served, by digest;
        None where either has no digest."""
        return self._same_answer

    @property
    def outcome(self) -> Outcome | None:
        """What became of the run that took the answer; None while it goes on."""
        return None if self.consumption is None else self.consumption.outcome

    @property
    def running(self) -> bool:
        """Whether the run that took the answer has not said yet how it ended."""
        return self.consumption is not None and self.consumption.outcome is None


class Abandoned(ResumeRefused):
    """Raised when the holder died in its run and `on_abandoned` is `refuse`."""


class StaleTicket(ResumeRefused):
    """Raised when a ticket names a pause other than the ones that wait."""

    http_status: ClassVar[int] = 410


class NotParked(ResumeRefused):
    """Raised when the run does not wait for this answer, and the record knows of none."""


class Superseded(ResumeRefused):
    """Raised when the run went on without this delivery, so what it came for is gone."""


class ClaimLost(RemitError):
    """Raised when a holder was replaced, or cannot prove that it was not. What it was
    about to write was not written."""


class OutcomeUnknown(RemitError):
    """Raised when a swap was sent and its answer never came: it may or may not have
    landed. Reading the record again settles it."""

    definite: ClassVar[bool] = False


class InvalidState(RemitError):
    """Raised when a state does not fit `validate=`. It was not persisted."""


class StoreError(RemitError):
    """Raised when the store itself is at fault."""


class StoreUnavailable(StoreError):
    """Raised when the store cannot be reached or did not answer, and nothing was sent
    that could have changed it."""

    http_status: ClassVar[int] = 503


class SchemaMismatch(StoreError):
    """Raised when a table or a record was written by a newer release than this one."""


class SetupRequired(StoreError):
    """Raised when the store's table is not there yet."""


class StoreMisconfigured(StoreError):
    """Raised when the store's settings can lose a claim that it acknowledged."""


class UsageError(RemitError, ValueError):
    """Raised when a call cannot mean anything; nothing was read or changed."""


class MissingExtra(UsageError, ImportError):
    """Raised when an optional dependency is not installed; the message names the extra."""


class UnsupportedVersion(UsageError):
    """Raised when the installed framework is not one that this release can gate."""


class GateNotEngaged(UsageError):
    """Raised when a gated run starts without the gate's hook having run. Nothing was
    served."""
