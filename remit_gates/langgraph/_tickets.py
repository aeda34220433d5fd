"""Tickets: what a person gets to see of a pause, and what brings their answer back to it.

A ticket names the pause that was shown, and a delivery that carries it answers that one
or none. Looking for tickets claims nothing and changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langgraph.types import Command

from remit_gates._drive import adrive, drive
from remit_gates._keeper import StorePort
from remit_gates._model import Phase, Snapshot
from remit_gates._ops import Dead, Flow, Load, Read, splice
from remit_gates._ticket import Hashed, Named, Secret, keys, seal, unseal
from remit_gates.errors import UsageError
from remit_gates.langgraph._bound import breakpoint_at, interrupt_of, shown
from remit_gates.langgraph._loop import gated
from remit_gates.langgraph._pauses import ERROR, Loaded, waiting


if TYPE_CHECKING:
    from remit_gates.langgraph._saver import Binding


TRIES: Final = 8
"""Looks at a run at the most, for one during which nobody moved it."""

_NOTHING: Final = object()
_ELSEWHERE: Final = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")


class Ticket:
    """One pause of a thread, as a person was shown it; `str()` of it is the ticket's text.

    The text is opaque, needs no quoting in a URL, and has fewer than 200 characters. It is
    no secret: without a `secret=` anyone can make one, and with it anyone can read it.

    Attributes:
        pause: The pause, as the record names it.
        interrupt_id: LangGraph's id of the question; None at a static breakpoint.
        thread: The thread id; None where it is too long for a ticket and was not given.
        namespace: The partition of the store; None where it is too long for a ticket.
        value: What the person is asked; None at a static breakpoint. Not there in a ticket
            that was parsed.
    """

    __slots__ = ("_config", "_text", "interrupt_id", "namespace", "pause", "thread", "value")

    value: Any

    def __init__(self, text: str, named: Named, thread: str | None, config: Any = None) -> None:
        self._text = text
        self._config = config
        self.pause = named.pause
        self.interrupt_id = interrupt_of(named.pause)
        self.thread = thread
        self.namespace = None if isinstance(named.namespace, Hashed) else named.namespace

    @classmethod
    def parse(cls, text: str, *, secret: Secret = None, thread: str | None = None) -> Ticket:
        """The ticket that `text` is.

        Args:
            text: What `str(ticket)` gave.
            secret: As given to `gate()`; of several keys, any may have signed it.
            thread: The thread that it must be of. A thread id too long for a ticket is not
                in it, and has to be given here.

        Raises:
            UsageError: It is forged, truncated, of another thread, or no ticket at all.
        """
        named = opened(text, keys(secret))
        if thread is not None and not named.is_of(thread):
            raise UsageError("The ticket is of another thread. Nothing was read or changed.")
        run = thread if isinstance(named.run, Hashed) else named.run
        return cls(text, named, run)

    @property
    def config(self) -> dict[str, Any]:
        """The thread's config with the ticket in it, to pass to `invoke`.

        Raises:
            UsageError: The thread is not known; see `parse`.
        """
        if self.thread is None:
            raise UsageError(
                "The thread id is too long to be in the ticket. Pass it to Ticket.parse() as"
                " thread=. Nothing was read or changed."
            )
        config = dict(self._config or {})
        given = config.get("configurable", {})
        kept = {name: given[name] for name in given if name not in _ELSEWHERE}
        here = {"thread_id": self.thread, **kept, "remit_ticket": self._text}
        return {**config, "configurable": here}

    def command(self, answer: Any = _NOTHING) -> Command[Any] | None:
        """What to pass to `invoke` as its input: `answer` for this very question, or None
        at a static breakpoint, which is gone on from without an answer.

        Raises:
            UsageError: There is an answer and no question, or the other way round.
        """
        if (answer is _NOTHING) != (self.interrupt_id is None):
            raise UsageError(
                "A static breakpoint takes no answer: call command() without one to go on, or"
                " do not go on. Nothing was delivered."
                if self.interrupt_id is None
                else "command() takes the answer to the question. Nothing was delivered."
            )
        return None if self.interrupt_id is None else Command(resume={self.interrupt_id: answer})

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<ticket for pause {self.pause} of thread {self.thread!r}>"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Ticket) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def opened(text: object, secret: tuple[bytes, ...]) -> Named:
    """What a ticket of this adapter says.

    Raises:
        UsageError: It is none.
    """
    named = unseal(text, secret)
    if named.framework != "langgraph" or ":" not in named.pause:
        raise UsageError("The ticket is of another framework. Nothing was read or changed.")
    return named


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
    free = loaded.parked is not None and claim is None and not failed and not left
    if free and record.closed(pause) is None and (yield from stands(loaded)):
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
