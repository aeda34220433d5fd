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
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from remit_gates._claim import ActiveClaim
from remit_gates._drive import adrive, drive
from remit_gates._model import Intent
from remit_gates._ops import Flow, Read, Swap, splice
from remit_gates._port import StorePort
from remit_gates.errors import GateNotEngaged, UsageError
from remit_gates.langgraph._answers import nested, takes_in
from remit_gates.langgraph._binding import Binding
from remit_gates.langgraph._pauses import (
    EDITS,
    NO_WRITES,
    NULL_TASK,
    RESUME,
    WRITTEN_UNDER,
    Loaded,
    Request,
)
from remit_gates.langgraph._redis import looks
from remit_gates.langgraph._run import ENTRY, Entry, claim_of


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


Plan = Callable[..., "Flow[Any] | Inner | None"]
"""What a gated method does with its arguments: a flow; or one call of the inner method; or
None, to call it with those very arguments. Most calls are of the last two kinds, so they
cost next to nothing."""


def _method(inner: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    """A method that performs `plan`, of the colour and signature of `inner`."""

    @functools.wraps(inner)
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        does = plan(self, *args, **kwargs)
        if does is None:
            return await inner(self, *args, **kwargs)
        if isinstance(does, Inner):
            return await inner(self, *does.args, **does.kwargs)
        port = SaverPort(self._remit, functools.partial(inner, self), awaited=True)
        return await adrive(does, port)

    @functools.wraps(inner)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        does = plan(self, *args, **kwargs)
        if does is None:
            return inner(self, *args, **kwargs)
        if isinstance(does, Inner):
            return inner(self, *does.args, **does.kwargs)
        port = SaverPort(self._remit, functools.partial(inner, self), awaited=False)
        return drive(does, port)

    return awaited if inspect.iscoroutinefunction(inner) else called


def _get_tuple(saver: Any, config: Any) -> Flow[Any] | None:
    conf = config.get("configurable", {})
    entry = conf.get(ENTRY)
    if "__pregel_task_id" in conf or "__pregel_runtime" not in conf or "thread_id" not in conf:
        # A subgraph of a run that answers a pause once more must not use the first answer.
        again = entry.again if isinstance(entry, Entry) and conf.get("checkpoint_ns") else None
        return _nested(config, again) if again else None
    at = entry.loop if isinstance(entry, Entry) else None
    if at is None or at.checkpointer is not saver:
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
) -> Flow[Any] | Inner | None:
    check = saver._remit.check
    root = not config.get("configurable", {}).get("checkpoint_ns")
    if check is not None and root:
        check(config, checkpoint)
    claim = claim_of(config)
    if claim is None:
        return None
    if root and claim.guarded:
        # New input takes no claim, so that its checkpoints have no token: by that, a later
        # continue knows whose work it goes on with.
        metadata = {**metadata, WRITTEN_UNDER: claim.token}
    return _fenced(saver, claim, Inner((config, checkpoint, metadata, *args), kwargs))


def _put_writes(
    saver: Any, config: Any, writes: Any, task_id: str, *args: Any, **kwargs: Any
) -> Flow[Any] | Inner | None:
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
    return _fenced(saver, claim, Inner((config, marked, task_id, *args), kwargs))


def _fenced(saver: Any, claim: ActiveClaim | None, write: Inner) -> Flow[Any] | Inner:
    """`write`, once it is certain that its claim is held. Where that is known, it needs no
    flow."""
    if claim is None or claim.provably_alive:
        return write
    return _proved(saver, claim, write)


def _proved(saver: Any, claim: ActiveClaim, write: Inner) -> Flow[Any]:
    yield from saver._remit.keeper.fence(claim)
    return (yield write)


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


def _setup(saver: Any) -> Flow[None] | None:
    # A saver that sets itself up calls this before everything it does.
    return None if hasattr(saver, "is_setup") else _both_set_up()


def _both_set_up() -> Flow[None]:
    yield Inner(())
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
