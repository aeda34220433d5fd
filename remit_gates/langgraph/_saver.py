"""A gated saver is the saver that it was made from, plus the gate: the same state, the
same capabilities, and a type that is a subclass of the saver's own.

A proxy would be lost where LangGraph copies a saver, and would hide what it can do.
Only methods that the saver's type itself overrides are overridden, because that is how
others detect what a saver can do.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from remit_gates._drive import adrive, drive
from remit_gates._keeper import ActiveClaim, Keeper, StorePort
from remit_gates._liveness import mint
from remit_gates._model import Delivery, Intent, Record, RunKey
from remit_gates._ops import Flow, Read, Swap, splice
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._refusal import Verbs, parked_again, refusal, same_as_first
from remit_gates.errors import AlreadyConsumed, GateNotEngaged, StoreError, UsageError
from remit_gates.langgraph._answers import nested, prepare, takes_in
from remit_gates.langgraph._bound import Bound, compared
from remit_gates.langgraph._looking import waiting_now
from remit_gates.langgraph._loop import ENTRY, Entry, claim_of
from remit_gates.langgraph._pauses import (
    EDITS,
    NO_WRITES,
    NULL_TASK,
    RESUME,
    WRITTEN_UNDER,
    Loaded,
    Request,
    judge,
)
from remit_gates.langgraph._redis import looks
from remit_gates.langgraph._tickets import Ticket, opened
from remit_gates.stores import AsyncStore, Store, as_async_store, as_store


VERBS = Verbs(
    go_on="call graph.invoke(None, config)",
    ask="call graph.get_state(config)",
    fork="pass remit_fork=True in configurable",
)


class Binding:
    """The gate of one saver.

    Args:
        store: Where the records are: a URL, a driver connection or pool, or a store.
        policy: The user's choices.
        namespace: The user's partition of the store.
        awaited: Whether the saver has async methods; some have nothing else.
        ordinal: Whether interrupt ids tell the interrupts of one node apart.
        check: Raises for a state that is not to be persisted.
        secret: The keys that tickets are signed with, the current one first.
        loop: The event loop of a saver whose sync methods go there.
    """

    def __init__(
        self,
        store: Any,
        policy: Policy,
        namespace: str,
        *,
        awaited: bool,
        ordinal: bool,
        check: Callable[[Any, Any], None] | None,
        secret: tuple[bytes, ...],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.keeper = Keeper(as_async_store(store) if awaited else as_store(store), policy)
        self.namespace = namespace
        self.ordinal = ordinal
        self.check = check
        self.secret = secret
        self.loop = loop

    @functools.cached_property
    def store(self) -> Store:
        """The store for sync callers."""
        try:
            return as_store(self.keeper.store)
        except UsageError:
            # Beside an aiosqlite connection, the store must have been awaited once. Sync
            # calls of such a saver come from other threads than its loop's.
            if self.loop is None or _runs_here(self.loop):
                raise
            first = _read(self.astore, self.key(""))
            asyncio.run_coroutine_threadsafe(first, self.loop).result()
            return as_store(self.keeper.store)

    @functools.cached_property
    def astore(self) -> AsyncStore:
        """The store for async callers."""
        return as_async_store(self.keeper.store)

    def key(self, thread: str) -> RunKey:
        """The name of a thread's run in the store."""
        return RunKey("langgraph", self.namespace, thread)

    def admit(self, entry: Entry, request: Request) -> Flow[CheckpointTuple | None]:
        """Claim the run for `request`; what LangGraph gets to work with.

        Raises:
            ResumeRefused: The delivery is not served.
        """
        holder = mint()
        bound = entry.bound

        def judged(loaded: Loaded, record: Record) -> Delivery:
            if bound is not None:
                return bound.judge(loaded, record, holder)
            return judge(request, loaded, record, holder)

        result = yield from self.keeper.admit(self.key(request.run), holder, judged)
        if isinstance(result, Denied):
            result = compared(request, bound, result)
            if same_as_first(result) and request.checkpoint is None:
                # As if it had been first: at the end of a run there is nothing to do,
                # so LangGraph answers with the state and writes nothing.
                entry.loop.input = None
                stands: Loaded = result.loaded
                return stands.parked
            error = refusal(result, VERBS)
            if isinstance(error, AlreadyConsumed) and parked_again(result):
                # A store that fails now has said all that the caller must know.
                with suppress(StoreError):
                    error.tickets = yield from waiting_now(self, request.run)
            raise error
        entry.claim = result
        passage = result.passage
        ready = prepare(request, passage.loaded, passage.before, passage.delivery)
        entry.again = ready.again
        if not ready.resume:
            entry.loop.input = None
        elif bound is not None and request.answers and request.named is None:
            # Given as it is, it would answer everything that waits.
            entry.answer_by_id(bound.interrupt or "")
        return ready.parked

    def bound(self, entry: Entry, request: Request) -> Bound | None:
        """What binds the delivery to a pause: the ticket in its config, if there is one.

        Raises:
            UsageError: It is none of this gate's, or does not go with the delivery.
        """
        ticket = entry.options.get("remit_ticket")
        if ticket is None:
            return None
        named = opened(str(ticket) if isinstance(ticket, Ticket) else ticket, self.secret)
        if not (named.is_in(self.namespace) and named.is_of(request.run)):
            raise UsageError(
                f"Thread {request.run!r}: the ticket is of another thread or namespace. Nothing"
                " was served. Pass the ticket's own config."
            )
        return Bound(request, named).checked()


async def _read(store: AsyncStore, run: RunKey) -> None:
    await store.read(run)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return not loop.is_running()


class SaverPort(StorePort):
    """The operations of a flow on a gated saver: its store, and its inner method."""

    def __init__(self, binding: Binding, inner: Callable[..., Any], *, awaited: bool) -> None:
        store = binding.astore if awaited else binding.store
        super().__init__(store, asyncio.sleep if awaited else time.sleep)
        self.inner = inner


@dataclass(frozen=True, slots=True)
class Inner:
    """Call the inner saver's own method. Result: what it returns."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def on(self, port: Any) -> Any:
        return port.inner(*self.args, **self.kwargs)


@dataclass(frozen=True, slots=True)
class OnStore:
    """Call a method of the store that is no part of the protocol. Result: its own."""

    method: str
    args: tuple[Any, ...] = ()

    def on(self, port: Any) -> Any:
        return getattr(port.store, self.method)(*self.args)


def gated_type(cls: type[Any]) -> type[Any]:
    """The subclass of `cls` whose instances are gated by what is in their `_remit`."""
    made = _types.get(cls)
    if made is None:
        body: dict[str, Any] = {
            "__slots__": ("_remit",),
            "__module__": cls.__module__,
            **looks(cls),
        }
        for name, plan in _PLANS.items():
            inner = getattr(cls, name, None)
            if inner is not None and inner is not getattr(BaseCheckpointSaver, name, None):
                body[name] = _method(inner, plan)
        made = _types[cls] = type(f"Gated{cls.__name__}", (cls,), body)
    return made


_types: dict[type[Any], type[Any]] = {}


Plan = Callable[..., "Flow[Any] | None"]
"""What a gated method does with its arguments; None to call the inner method with them,
and nothing else. Most calls are such, so they cost next to nothing."""


def _method(inner: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    """A method that performs `plan`, of the colour and signature of `inner`."""

    @functools.wraps(inner)
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        flow = plan(self, *args, **kwargs)
        if flow is None:
            return await inner(self, *args, **kwargs)
        port = SaverPort(self._remit, functools.partial(inner, self), awaited=True)
        return await adrive(flow, port)

    @functools.wraps(inner)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        flow = plan(self, *args, **kwargs)
        if flow is None:
            return inner(self, *args, **kwargs)
        port = SaverPort(self._remit, functools.partial(inner, self), awaited=False)
        return drive(flow, port)

    return awaited if inspect.iscoroutinefunction(inner) else called


def _get_tuple(saver: Any, config: Any) -> Flow[Any] | None:
    conf = config.get("configurable", {})
    entry = conf.get(ENTRY)
    if "__pregel_task_id" in conf or "__pregel_runtime" not in conf or "thread_id" not in conf:
        # A subgraph of a run that answers a pause once more must not use the first answer.
        again = entry.again if isinstance(entry, Entry) and conf.get("checkpoint_ns") else None
        return _nested(config, again) if again else None
    if not isinstance(entry, Entry) or entry.loop.checkpointer is not saver:
        raise GateNotEngaged(
            f"A run of thread {conf['thread_id']!r} asks its gated saver for its checkpoint,"
            " but the gate's hook into LangGraph's loop did not run, so the run could not be"
            " claimed. Nothing was served. Either another saver wraps the gated one, and gate()"
            " must be outermost; or something replaced the hook after gate() was called."
        )
    if entry.judged:
        return None
    entry.judged = True
    binding: Binding = saver._remit
    request = entry.request(binding.ordinal)
    entry.bound = binding.bound(entry, request)
    if request.intent is Intent.START and binding.keeper.policy.scope == "resume":
        return _reentered(binding, config, entry, request) if entry.has_run_id else None
    return _claimed(binding, config, entry, request)


def _nested(config: Any, again: frozenset[str]) -> Flow[Any]:
    # Some savers' `aget_tuple` is their `get_tuple`: without the entry, it cuts nothing.
    return nested((yield Inner((_without(config, ENTRY),))), again)


def _reentered(binding: Binding, config: Any, entry: Entry, request: Request) -> Flow[Any]:
    parked = yield Inner((config,))
    if not entry.reenters(parked):
        return parked
    again = replace(request, intent=Intent.CONTINUE)
    return (yield from _claimed(binding, config, entry, again))


def _claimed(binding: Binding, config: Any, entry: Entry, request: Request) -> Flow[Any]:
    def load() -> Flow[Loaded]:
        parked = yield Inner((config,))
        latest = parked
        if request.checkpoint is not None:
            latest = yield Inner((_without(config, "checkpoint_id"),))
        below = yield from _below(config, parked)
        return Loaded(parked, latest and latest.checkpoint["id"], below)

    return splice(binding.admit(entry, request), load)


def _below(config: Any, parked: CheckpointTuple | None) -> Flow[tuple[CheckpointTuple, ...]]:
    """What stands below the edits of a run's state; nothing where it was not edited."""
    found: list[CheckpointTuple] = []
    at: Any = parked
    while at is not None and at.metadata.get("source") in EDITS and at.parent_config:
        name = {"checkpoint_id": at.parent_config["configurable"]["checkpoint_id"]}
        at = yield Inner(({**config, "configurable": {**config["configurable"], **name}},))
        if at is not None:
            found.append(at)
    return tuple(found)


def _without(config: Any, name: str) -> Any:
    conf = {key: value for key, value in config["configurable"].items() if key != name}
    return {**config, "configurable": conf}


def _put(
    saver: Any, config: Any, checkpoint: Any, metadata: Any, *args: Any, **kwargs: Any
) -> Flow[Any] | None:
    check = saver._remit.check
    root = not config.get("configurable", {}).get("checkpoint_ns")
    if check is not None and root:
        check(config, checkpoint)
    claim = claim_of(config)
    if claim is None or (not root and claim.provably_alive):
        return None
    if root and claim.guarded:
        # New input takes no claim, so that its checkpoints have no token: by that, a later
        # continue knows whose work it goes on with.
        metadata = {**metadata, WRITTEN_UNDER: claim.token}
    return _fenced(saver, claim, (config, checkpoint, metadata, *args), kwargs)


def _put_writes(
    saver: Any, config: Any, writes: Any, task_id: str, *args: Any, **kwargs: Any
) -> Flow[Any] | None:
    claim = claim_of(config)
    taken = [value for channel, value in writes if channel == RESUME and task_id != NULL_TASK]
    if claim is not None and any(
        takes_in(claim.run.run, claim.passage.record, claim.token, value) for value in taken
    ):
        claim.answer_applied()
    # LangGraph before 1.2.16 leaves no mark of a task that took an answer and returned
    # nothing, and would run it again beside one that still waits.
    silent = bool(taken) and len(taken) == len(writes)
    if not silent and (claim is None or claim.provably_alive):
        return None
    marked = [*writes, (NO_WRITES, None)] if silent else writes
    return _fenced(saver, claim, (config, marked, task_id, *args), kwargs)


def _fenced(saver: Any, claim: ActiveClaim | None, args: Any, kwargs: Any) -> Flow[Any]:
    """A write, once it is certain that its claim is held."""
    if claim is not None and not claim.provably_alive:
        yield from saver._remit.keeper.fence(claim)
    return (yield Inner(args, kwargs))


def _delete_thread(saver: Any, thread_id: str) -> Flow[None]:
    yield Inner((thread_id,))
    yield OnStore("delete", (saver._remit.key(str(thread_id)),))


def _copy_thread(saver: Any, source_thread_id: str, target_thread_id: str) -> Flow[None]:
    """The copy is a run of its own: it knows what was answered, and nobody holds it."""
    yield Inner((source_thread_id, target_thread_id))
    source = yield Read(saver._remit.key(str(source_thread_id)))
    if source.version is not None:
        target = saver._remit.key(str(target_thread_id))
        before = yield Read(target)
        record = replace(source.record, claim=None)
        if (yield Swap(target, before.version, record, None, True)) is None:
            raise UsageError(f"{target} was used while it was being copied to. Copy it again.")


def _prune(saver: Any, thread_ids: Any, *args: Any, **kwargs: Any) -> Flow[None]:
    """A thread that is deleted whole takes its record along; one that is only thinned
    out keeps it, since its head may be answered yet."""
    threads = list(thread_ids)
    yield Inner((threads, *args), kwargs)
    if "delete" in (*args, kwargs.get("strategy")):
        for thread in threads:
            yield OnStore("delete", (saver._remit.key(str(thread)),))


def _setup(saver: Any) -> Flow[None]:
    yield Inner(())
    # A saver that sets itself up calls this before everything it does.
    if not hasattr(saver, "is_setup"):
        yield OnStore("setup")


_NAMED: Final[tuple[tuple[str, Plan], ...]] = (
    ("get_tuple", _get_tuple),
    ("put", _put),
    ("put_writes", _put_writes),
    ("delete_thread", _delete_thread),
    ("copy_thread", _copy_thread),
    ("prune", _prune),
    ("setup", _setup),
)

_PLANS: Final = {prefix + name: plan for name, plan in _NAMED for prefix in ("", "a")}
