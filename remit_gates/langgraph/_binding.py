"""The gate of one saver: its store, and how a delivery to it is admitted or refused."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from remit_gates._keeper import Keeper
from remit_gates._liveness import mint
from remit_gates._model import Delivery, Record, RunKey
from remit_gates._ops import Flow
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._refusal import Verbs, parked_again, refusal, same_as_first
from remit_gates.errors import AlreadyConsumed, ResumeRefused, StoreError, UsageError
from remit_gates.langgraph._answers import prepare
from remit_gates.langgraph._bound import Bound, compared
from remit_gates.langgraph._looking import waiting_now
from remit_gates.langgraph._pauses import Loaded, Request, judge
from remit_gates.langgraph._run import Entry
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
            raise (yield from self._refused(result, request.run))
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

    def _refused(self, denied: Denied, run: str) -> Flow[ResumeRefused]:
        # Raised by the caller, in no variable: an error that its own traceback leads to keeps
        # the run's whole state until the garbage collector finds it.
        error = refusal(denied, VERBS)
        if isinstance(error, AlreadyConsumed) and parked_again(denied):
            # A store that fails now has said all that the caller must know.
            with suppress(StoreError):
                error.tickets = yield from waiting_now(self, run)
        return error

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
