"""A claim that this process holds: what user code sees of it, and what is known of its end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

from remit_gates._drive import drive
from remit_gates._model import Outcome, RunKey
from remit_gates._passage import Passage
from remit_gates._port import StorePort


if TYPE_CHECKING:
    from remit_gates._keeper import Keeper


class ActiveClaim:
    """A claim that this process holds, as `current_claim()` gives it to user code."""

    __slots__ = ("_applied", "_keeper", "_left", "_lost", "_pid", "guarded", "outcome", "passage")

    def __init__(self, keeper: Keeper, passage: Passage, *, guarded: bool = True) -> None:
        self.passage = passage
        self.guarded = guarded
        """False where the store did not answer and the policy was to serve."""
        self._keeper = keeper
        self._pid = os.getpid()
        self._applied = False
        self._left = False
        self._lost = False
        self.outcome: Outcome | None = None
        """What user code said of the end of the run; None for finished."""

    @property
    def run(self) -> RunKey:
        """The run."""
        return self.passage.run

    @property
    def token(self) -> int:
        """Fencing token, strictly increasing for a run: an outside system that remembers
        the highest one it saw can turn a stale holder away. 0 when not `guarded`."""
        return self.passage.claim.token if self.guarded else 0

    @property
    def attempt(self) -> int:
        """1 for the first attempt at what this claim works on."""
        return self.passage.claim.attempt

    @property
    def pauses(self) -> tuple[str, ...]:
        """The pauses that it answers, or took over unfinished."""
        return self.passage.claim.pauses

    @property
    def delivery(self) -> str | None:
        """The delivery id, when the caller gave one."""
        return self.passage.claim.delivery

    @property
    def actor(self) -> str | None:
        """Who delivers, when the caller said so."""
        return self.passage.claim.actor

    @property
    def idempotency_key(self) -> str:
        """A key that is the same for every attempt at what this claim works on, and
        different for everything else: what to hand to a payment provider. A run that
        makes several calls adds a suffix of its own for each."""
        run = self.passage.run
        parts = (run.framework, run.namespace, run.run, self.passage.claim.key)
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def provably_alive(self) -> bool:
        """Whether the lease certainly still runs, by this process's own clock."""
        return not self.guarded or (
            not self._left and time.monotonic() < self.passage.deadline and os.getpid() == self._pid
        )

    def check(self) -> None:
        """Return only while the claim is certainly held: for use just before an effect.

        Raises:
            ClaimLost: It was taken over, or that cannot be excluded.
        """
        if not self.provably_alive:
            drive(self._keeper.fence(self), StorePort(self._keeper.renewer))

    async def acheck(self) -> None:
        """As `check`, without blocking the event loop."""
        if not self.provably_alive:
            await asyncio.to_thread(self.check)

    def parked(self, *waiting: str, position: str | None = None) -> None:
        """Say that the run ends waiting for answers, instead of finished.

        Args:
            waiting: The pauses that wait now; each is open again from then on.
            position: Where the run stands, in words of one's own.
        """
        self.outcome = Outcome("parked", position, waiting)

    def answer_applied(self) -> None:
        """Note that the framework has taken the answer in."""
        self._applied = True

    def beat(self) -> float | None:
        """Renew the lease, as a job of the heartbeat."""
        return self._keeper.beat(self)

    # A claim travels in a framework's config, which users may copy.
    def __copy__(self) -> ActiveClaim:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ActiveClaim:
        return self

    def __repr__(self) -> str:
        return f"<claim {self.token} on {self.run}>"
