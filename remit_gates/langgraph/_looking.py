"""Which pauses of a thread wait for a person, as tickets. Looking claims nothing and changes
nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from remit_gates._drive import adrive, drive
from remit_gates._model import Phase, Snapshot
from remit_gates._ops import Dead, Flow, Load, Read, splice
from remit_gates._port import StorePort
from remit_gates._ticket import Named, seal
from remit_gates.errors import UsageError
from remit_gates.langgraph._bound import breakpoint_at, shown
from remit_gates.langgraph._loop import gated
from remit_gates.langgraph._pauses import ERROR, Loaded, waiting
from remit_gates.langgraph._tickets import Ticket


if TYPE_CHECKING:
    from remit_gates.langgraph._binding import Binding


TRIES: Final = 8
"""Looks at a run at the most, for one during which nobody moved it."""


def tickets(graph: Any, config: Any) -> tuple[Ticket, ...]:
    """One ticket for each pause of a thread that waits for a person.

    A question whose answer is being served, or failed, or was left behind by a worker that
    died, waits only where the policy is to serve another answer to it. A static breakpoint
    that the graph was compiled with has a ticket as well.

    Args:
        graph: The compiled graph, or its gated saver, which knows of no breakpoints.
        config: The thread's config. What else it has goes into each ticket's `config`.

    Raises:
        UsageError: The graph is not gated, or the config names no thread.
        StoreError: The store could not be asked.
    """
    saver = _saver(graph, config)
    port = _Port(saver._remit.store, time.sleep, "")
    return drive(_looked(graph, saver, config), port)


async def atickets(graph: Any, config: Any) -> tuple[Ticket, ...]:
    """As `tickets`, for async code."""
    saver = _saver(graph, config)
    port = _Port(saver._remit.astore, asyncio.sleep, "a")
    return await adrive(_looked(graph, saver, config), port)


def _saver(graph: Any, config: Any) -> Any:
    saver = getattr(graph, "checkpointer", graph)
    if not gated(saver):
        raise UsageError("tickets() takes a graph that was compiled with a gated saver.")
    if "thread_id" not in ((config or {}).get("configurable") or {}):
        raise UsageError("tickets() takes a config with a thread_id in its configurable.")
    return saver


class _Port(StorePort):
    def __init__(self, store: Any, sleep: Any, prefix: str) -> None:
        super().__init__(store, sleep)
        self.prefix = prefix


@dataclass(frozen=True, slots=True)
class _Ask:
    """Call a method of LangGraph's, in the caller's colour. Result: what it returns."""

    target: Any
    method: str
    config: Any

    def on(self, port: Any) -> Any:
        return getattr(self.target, port.prefix + self.method)(self.config)


def _looked(graph: Any, saver: Any, config: Any) -> Flow[tuple[Ticket, ...]]:
    conf = config["configurable"]
    head = {"configurable": {"thread_id": conf["thread_id"], "checkpoint_ns": ""}}

    def load() -> Flow[Loaded]:
        parked = yield _Ask(saver, "get_tuple", head)
        return Loaded(parked, parked and parked.checkpoint["id"])

    def stands(loaded: Loaded) -> Flow[bool]:
        before = getattr(graph, "interrupt_before_nodes", ())
        after = getattr(graph, "interrupt_after_nodes", ())
        if not before and not after:
            return False
        state = yield _Ask(graph, "get_state", head)
        if not state.next or state.config["configurable"].get("checkpoint_id") != loaded.position:
            return False
        if _among(state.next, before):
            return True
        # What an edit adds to a state is not what ran before it.
        while after and state.parent_config is not None:
            edited = (state.metadata or {}).get("source") == "update"
            state = yield _Ask(graph, "get_state", state.parent_config)
            if not edited:
                return _among(state.next, after)
        return False

    return splice(_waiting(saver._remit, str(conf["thread_id"]), config, stands), load)


def _among(names: Iterable[str], nodes: Any) -> bool:
    return any(nodes == "*" or name in nodes for name in names)


def waiting_now(binding: Binding, thread: str) -> Flow[tuple[Ticket, ...]]:
    """The tickets of a run that was just found parked; it stands at a breakpoint where it
    asks nothing."""

    def stands(loaded: Loaded) -> Flow[bool]:
        yield from ()
        return True

    return _waiting(binding, thread, None, stands)


def _waiting(
    binding: Binding, thread: str, config: Any, stands: Callable[[Loaded], Flow[bool]]
) -> Flow[tuple[Ticket, ...]]:
    key = binding.key(thread)
    snap: Snapshot = yield Read(key)
    loaded: Loaded = yield Load()
    for _ in range(TRIES):
        before, snap = snap, (yield Read(key))
        if before.record == snap.record:
            break
        loaded = yield Load()
    record, claim = snap.record, snap.record.claim
    alive = claim is not None and (snap.lease_left or 0) > 0 and not (yield Dead(claim.holder))

    def ticket(pause: str, value: Any, mark: bytes = b"") -> Ticket:
        generation = record.generation(pause)
        named = Named("langgraph", binding.namespace, thread, pause, generation, mark)
        made = Ticket(seal(named, binding.secret), named, thread, config)
        made.value = value
        return made

    waits = waiting(loaded.position, loaded.writes, record, ordinal=binding.ordinal)
    if waits:
        return tuple(
            ticket(
                wait.pause,
                wait.value,
                b"" if binding.ordinal else shown(wait.value, thread, wait.pause),
            )
            for wait in waits
            if _is_open(binding, snap, wait.pause, alive=alive)
        )
    pause = breakpoint_at(loaded.position)
    failed = any(channel == ERROR for _, channel, _ in loaded.writes)
    # Whose work an edited state would go on with is not looked up for this.
    left = record.left and (loaded.edited is not None or not loaded.moved(record))
    released = record.consumption(pause) is not None and record.closed(pause) is None
    free = released or (record.closed(pause) is None and not failed and not left)
    if loaded.parked is not None and claim is None and free and (yield from stands(loaded)):
        return (ticket(pause, None),)
    return ()


def _is_open(binding: Binding, snap: Snapshot, pause: str, *, alive: bool) -> bool:
    """Whether an answer to `pause` would be served, now or when the run is free again."""
    entry, policy = snap.record.closed(pause), binding.keeper.policy
    if entry is None:
        return True
    if entry.phase is Phase.FAILED:
        return policy.on_failure == "retry"
    return entry.phase is Phase.RUNNING and policy.on_abandoned == "serve" and not alive
