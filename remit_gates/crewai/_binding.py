"""The gate of one persistence: it admits deliveries, and tells the late ones what became of
their pause."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final

from remit_gates._claim import ActiveClaim
from remit_gates._decide import Refused, same_as_served
from remit_gates._keeper import Keeper
from remit_gates._liveness import known_dead, mint
from remit_gates._model import Delivery, Phase, Reason, Record, RunKey
from remit_gates._ops import Flow, splice
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates._ticket import Named, seal, unseal
from remit_gates.crewai._pauses import Request, in_doubt, judge, last_answered, pause_of
from remit_gates.crewai._refusals import refused, released
from remit_gates.crewai._run import Entry
from remit_gates.errors import ResumeRefused, UsageError
from remit_gates.stores import AsyncStore, as_async_store, as_store


missed: Final[ContextVar[tuple[Binding, str] | None]] = ContextVar(
    "remit_gates_crewai_missed", default=None
)
"""The last flow id for which a gated persistence had no pause, and its gate."""


class Binding:
    """The gate of one persistence.

    Args:
        inner: The persistence.
        store: Where the records are: a URL, a driver connection or pool, or a store.
        policy: The user's choices.
        namespace: The user's partition of the store.
        secret: The keys that tickets are signed with, the current one first.
    """

    def __init__(
        self, inner: Any, store: Any, policy: Policy, namespace: str, secret: tuple[bytes, ...]
    ) -> None:
        self.inner = inner
        self.secret = secret
        self.store = as_store(store)
        self.policy = policy
        self.namespace = namespace
        # A dead holder's pause whose row is there is intact, whatever the policy; `judge`
        # sees to those whose row is gone.
        self.keeper = Keeper(self.store, replace(policy, on_abandoned="serve"))
        # To restore a checkpoint is to say that what came of it before is not enough.
        self.restorer = Keeper(
            self.store, replace(policy, on_abandoned="serve", on_failure="retry")
        )

    @functools.cached_property
    def astore(self) -> AsyncStore:
        """The store for async callers. Flows hop between event loops, so no driver that is
        bound to one is used: calls wait in threads."""
        return as_async_store(self.store)

    def key(self, run: str) -> RunKey:
        """The name of a flow's run in the store."""
        return RunKey("crewai", self.namespace, run)

    def admit_answer(self, request: Request) -> Flow[Entry]:
        """Claim the run for an answer.

        Raises:
            ResumeRefused: It is not served.
            UsageError: The persistence does not keep a pause as it is, or the answer does
                not name its pause and the policy demands it.
        """
        if self.policy.answers == "bound" and request.ticket is None:
            raise UsageError(
                f"Flow {request.run!r}: the answer does not name the pause that it answers, and"
                " the policy is answers='bound'. It was not recorded and nothing ran. Pass"
                " remit_ticket=, from ticket(flow)."
            )
        holder = mint()

        def judged(waiting: str | None, record: Record) -> Delivery:
            return judge(request, waiting, record, holder, self.policy)

        admitting = self.keeper.admit(self.key(request.run), holder, judged)
        result = yield from splice(admitting, lambda: self._waiting(request))
        if isinstance(result, Denied) and result.verdict.same is None and result.record:
            # It was refused before it was judged: it may be what is being served.
            same = same_as_served(result.record, judged(request.named, result.record))
            result = replace(result, verdict=replace(result.verdict, same=same))
        return _entry(result)

    def admit(self, run: str, made: Callable[..., Delivery], *, restored: bool) -> Flow[Entry]:
        """Claim the run for what `made` makes of a holder.

        Raises:
            ResumeRefused: It is not served.
        """
        holder = mint()
        keeper = self.restorer if restored else self.keeper
        delivery = made(holder=holder)
        return _entry((yield from keeper.admit(self.key(run), holder, lambda *_: delivery)))

    def _waiting(self, request: Request) -> Flow[str | None]:
        """The pause on record."""
        found = yield Pending(request.run)
        pause = _name(found)
        if pause is None or pause in {request.pause, request.named}:
            return pause
        # A pause must have the same name whenever it is read, or it could be answered twice.
        if _name((yield Pending(request.run))) != pause:
            raise UsageError(
                f"Flow {request.run!r}: {type(self.inner).__name__} gives its pause another"
                " requested_at each time that it is read, so answers to it cannot be told"
                " apart. Nothing was served. Have it store the whole context (to_dict())."
            )
        return pause

    def ticket(self, run: str, pause: str) -> str:
        """The ticket that names `pause` of `run`."""
        return seal(Named("crewai", self.namespace, run, pause), self.secret)

    def named(self, ticket: object, run: str) -> str:
        """The pause of `run` that `ticket` names.

        Raises:
            UsageError: It is no ticket of this gate, or one of another flow.
        """
        named = unseal(ticket, self.secret)
        if named.framework != "crewai" or not named.is_in(self.namespace) or not named.is_of(run):
            raise UsageError(
                f"Flow {run!r}: the ticket is of another flow, namespace or framework. Nothing"
                " was served. Load the flow that it is for."
            )
        return named.pause

    def late(self, run: str) -> ResumeRefused | None:
        """What to tell whoever asks for a pause of `run` while there is none: what became
        of the last one, if the gate knows it."""
        snap = self.store.read(self.key(run))
        entry = last_answered(snap.record)
        if entry is None:
            return None
        claim = snap.record.claim
        lapsed = claim is not None and ((snap.lease_left or 0) <= 0 or known_dead(claim.holder))
        reason = Reason.FAILED if entry.phase is Phase.FAILED else Reason.CONSUMED
        if lapsed and in_doubt(snap.record, entry) and self.policy.on_abandoned == "refuse":
            reason = Reason.ABANDONED
        denied = Denied(self.key(run), Refused(reason, claim, entry))
        return released(denied) if entry.reopened else refused(denied)


def _entry(result: ActiveClaim | Denied) -> Entry:
    if isinstance(result, Denied):
        raise refused(result)
    return Entry(result)


def _name(found: Any) -> str | None:
    return None if found is None else pause_of(found[1])


class FlowPort(StorePort):
    """The operations of a flow of the protocol on a gated persistence.

    Args:
        binding: Its gate.
        inline: Whether the caller's event loop is its own, so that blocking it is free.
    """

    def __init__(self, binding: Binding, *, inline: bool) -> None:
        super().__init__(binding.store if inline else binding.astore, asyncio.sleep)
        self._inner = binding.inner
        self._inline = inline

    def pending(self, run: str) -> Any:
        """The pause of `run` and its state, from the persistence itself."""
        load = self._inner.load_pending_feedback
        return load(run) if self._inline else asyncio.to_thread(load, run)


@dataclass(frozen=True, slots=True)
class Pending:
    """Load the pause that waits. Result: its state and context, or None."""

    run: str

    def on(self, port: Any) -> Any:
        return port.pending(self.run)
