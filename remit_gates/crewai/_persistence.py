"""A gated persistence is the persistence that it was made from, plus the gate. What a run
under a claim writes goes through only while the claim is held, and clearing its pause is
the point after which an answer is consumed for good.

It is a proxy: CrewAI takes it for the wrapped object, which stays as it is.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final

import wrapt

from remit_gates._decide import Refused, same_as_served
from remit_gates._keeper import ActiveClaim, Keeper, StorePort
from remit_gates._liveness import known_dead, mint
from remit_gates._model import Delivery, Phase, Reason, Record, RunKey
from remit_gates._ops import Flow, splice
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._ticket import Named, seal, unseal
from remit_gates.crewai._pauses import Request, in_doubt, judge, last_answered, pause_of
from remit_gates.crewai._refusals import refused, released
from remit_gates.errors import ClaimLost, GateNotEngaged, ResumeRefused, UsageError
from remit_gates.stores import AsyncStore, as_async_store, as_store


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

missed: Final[ContextVar[tuple[Binding, str] | None]] = ContextVar(
    "remit_gates_crewai_missed", default=None
)
"""The last flow id for which a gated persistence had no pause, and its gate."""


def entry_of(run: Any) -> Entry | None:
    """The entry of `run`, for whoever is called within it."""
    entry = entered.get()
    if entry is None or entry.ended or entry.claim.run.run != str(run):
        return None
    return entry


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


class PausedId(str):
    """A flow id that came with a pause. CrewAI hands it back when it clears the pause.

    Attributes:
        binding: The gate of the persistence that the pause is in.
    """

    __slots__ = ("binding",)

    binding: Binding

    @classmethod
    def of(cls, run: str, binding: Binding) -> PausedId:
        """`run`, of a pause behind `binding`."""
        made = cls(run)
        made.binding = binding
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> PausedId:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Nowhere else is it more than the id.
        return str, (str(self),)


class GatedPersistence(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A persistence behind a gate; see the module."""

    def __init__(self, inner: Any, binding: Binding, source: Any) -> None:
        super().__init__(inner)
        self._self_binding = binding
        self._self_source = source

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        """Save, while the claim is held if the run has one."""
        _fence(flow_uuid)
        self.__wrapped__.save_state(
            flow_uuid=flow_uuid, method_name=method_name, state_data=state_data
        )

    def save_pending_feedback(self, flow_uuid: str, context: Any, state_data: Any) -> None:
        """Save, while the claim is held if the run has one."""
        _fence(flow_uuid)
        self.__wrapped__.save_pending_feedback(
            flow_uuid=flow_uuid, context=context, state_data=state_data
        )
        # The instance that paused may be resumed without loading anything.
        context.flow_id = PausedId.of(context.flow_id, self._self_binding)

    def load_pending_feedback(self, flow_uuid: str) -> Any:
        """Load. Looking never consumes."""
        found = self.__wrapped__.load_pending_feedback(flow_uuid)
        if found is None:
            missed.set((self._self_binding, str(flow_uuid)))
            return None
        state, context = found
        paused = PausedId.of(context.flow_id, self._self_binding)
        return state, dataclasses.replace(context, flow_id=paused)

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Clear, while the claim is held: from here on the answer stays consumed."""
        entry = entry_of(flow_uuid)
        if entry is None:
            if isinstance(flow_uuid, PausedId):
                raise GateNotEngaged(
                    f"Flow {str(flow_uuid)!r} goes on from its pause, but the gate's hook into"
                    " Flow.resume_async did not run, so it could not be claimed. No listener"
                    " ran. Either another object wraps the gated persistence, and gate() must"
                    " be outermost; or something replaced the hook."
                )
            # Somebody gives the pause up by hand.
            self.__wrapped__.clear_pending_feedback(flow_uuid)
            return
        entry.fence()
        entry.committed = True
        try:
            self.__wrapped__.clear_pending_feedback(str(flow_uuid))
        except BaseException:
            # CrewAI runs no listener after this, so if the row is there it may be answered.
            entry.committed = False
            raise

    def __copy__(self) -> GatedPersistence:
        return self._remade(copy.copy(self.__wrapped__))

    def __deepcopy__(self, memo: dict[int, Any]) -> GatedPersistence:
        return self._remade(copy.deepcopy(self.__wrapped__, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        from remit_gates.crewai import _regated

        binding = self._self_binding
        if self._self_source is not None and not isinstance(self._self_source, str):
            raise UsageError(
                "A gated persistence can be pickled when its store is named by a URL, or found"
                " in the persistence. Pass store= as a URL. Nothing was pickled."
            )
        options = (binding.policy, binding.namespace, binding.secret or None)
        return _regated, (self.__wrapped__, self._self_source, *options)

    def _remade(self, inner: Any) -> GatedPersistence:
        binding = copy.copy(self._self_binding)
        binding.inner = inner
        return GatedPersistence(inner, binding, self._self_source)


def _fence(run: Any) -> None:
    entry = entry_of(run)
    if entry is not None:
        entry.fence()
