"""A claim is held from the load, or from the first node, until its run is left or forgotten."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import Any, Final

from remit_gates._claim import ActiveClaim
from remit_gates._drive import drive
from remit_gates._heartbeat import HEARTBEAT
from remit_gates._model import Outcome
from remit_gates._port import StorePort
from remit_gates.pydantic_graph._binding import Binding


loaded_here: ContextVar[Hold | None] = ContextVar("remit_gates_loaded", default=None)
"""What the calling code has loaded last."""

_VALUES: Final = (str, bytes, int, float, complex, tuple, frozenset, type(None))
"""Types of which equal objects may be one object, so that identity says nothing."""


class Hold:
    """What is known of a run from its claim on.

    Attributes:
        binding: The gate.
        claim: The claim.
        snapshot: What was loaded; None for a run that began with a node of its own.
        instead: Per snapshot id that a node came with, the one that it runs under.
        ran: How many nodes have begun.
        failed: What ended the last one.
        after: Id of the snapshot after it; None while there is none.
        over: Whether the run has reached its end.
    """

    def __init__(self, binding: Binding, claim: ActiveClaim, snapshot: Any = None) -> None:
        self.binding = binding
        self.claim = claim
        self.snapshot = snapshot
        self.instead: dict[str, str] = {}
        self.ran = 0
        self.failed: str | None = None
        self.after: str | None = None
        self.over = False
        self._watch: weakref.finalize[Any, Any] | None = None

    def kept_by(self, owner: Any) -> None:
        """Be given back when `owner` is gone, if it has not been by then."""
        self._forget()
        self._watch = weakref.finalize(owner, _forsaken, self)
        self._watch.atexit = False

    def fits(self, node: Any, state: Any) -> bool:
        """Whether a run of `node` on `state` is what this claim was loaded for: of all that
        share a persistence, one may have the claim."""
        if loaded_here.get() is self:
            return True
        # The load may have been awaited in a task of its own.
        loaded = self.snapshot
        return loaded is not None and (
            node is loaded.node or (state is loaded.state and not isinstance(state, _VALUES))
        )

    @property
    def outcome(self) -> Outcome | None:
        """What became of the run; None if no node of it began."""
        if not self.ran:
            return None
        if self.over:
            return Outcome("finished", self.after)
        if self.failed is not None or self.after is None:
            return Outcome("failed", self.after, detail=self.failed)
        return Outcome("parked", self.after, (self.after,))

    async def leave(self) -> None:
        """Give the claim back."""
        self._forget()
        await self.binding.leave(self.claim, self.outcome)

    def _forget(self) -> None:
        if self._watch is not None:
            self._watch.detach()


def _forsaken(hold: Hold) -> None:
    # The garbage collector may be in the middle of anything here, so that the store is left
    # to the heartbeat.
    def job() -> None:
        keeper = hold.binding.keeper
        drive(keeper.dismiss(hold.claim, hold.outcome), StorePort(keeper.renewer))

    HEARTBEAT.add(job, 0.0)
