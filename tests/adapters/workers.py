"""Workers that share one database: each has a saver, a gate and connections of its own.

A test is written once. Whether its graph is called or awaited is the worker's business: the
calls of an async worker run on its own event loop, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar

from remit_gates.langgraph import gate, release
from tests.adapters.kinds import KINDS, Places
from tests.waiting import PATIENCE


T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.start(work).result(PATIENCE)

    def close(self) -> None:
        self.run(self.loop.shutdown_asyncgens())
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()


class Worker:
    """Somebody with a saver of their own.

    Attributes:
        saver: The saver, gated or bare.
        loop: Where the calls of an async worker run.
    """

    def __init__(self, saver: Any, loop: Loop | None) -> None:
        self.saver = saver
        self.loop = loop

    def compile(self, builder: Any, **options: Any) -> Graph:
        """`builder`, compiled with this worker's saver."""
        return Graph(self, builder.compile(checkpointer=self.saver, **options))

    def call(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """The method `name` of `target`, in this worker's colour."""
        if self.loop is None:
            return getattr(target, name)(*args, **kwargs)
        return self.loop.run(getattr(target, f"a{name}")(*args, **kwargs))


class Graph:
    """A compiled graph, called in its worker's colour."""

    def __init__(self, worker: Worker, compiled: Any) -> None:
        self.worker = worker
        self.compiled = compiled

    def invoke(self, given: Any, config: Any, **options: Any) -> Any:
        return self.worker.call(self.compiled, "invoke", given, config, **options)

    def state(self, config: Any, **options: Any) -> Any:
        return self.worker.call(self.compiled, "get_state", config, **options)

    def update(self, config: Any, values: Any, **options: Any) -> Any:
        return self.worker.call(self.compiled, "update_state", config, values, **options)

    def stream(self, given: Any, config: Any, **options: Any) -> list[Any]:
        """All that the graph streams."""
        if self.worker.loop is None:
            return list(self.compiled.stream(given, config, **options))

        async def collect() -> list[Any]:
            return [item async for item in self.compiled.astream(given, config, **options)]

        return self.worker.loop.run(collect())

    def history(self, config: Any) -> list[Any]:
        """The thread's states, newest first."""
        if self.worker.loop is None:
            return list(self.compiled.get_state_history(config))

        async def collect() -> list[Any]:
            return [state async for state in self.compiled.aget_state_history(config)]

        return self.worker.loop.run(collect())

    def waiting(self, config: Any) -> list[Any]:
        """The interrupts that wait on a thread."""
        state = self.state(config)
        return [found for task in state.tasks for found in task.interrupts]


class Team:
    """Makes workers of one kind over one database, and closes them.

    Attributes:
        name: Which kind.
        places: Where they keep what they write.
    """

    def __init__(self, name: str, places: Places, stack: contextlib.ExitStack) -> None:
        self.name = name
        self._kind = KINDS[name]
        self.places = places
        self._stack = stack

    def worker(self, **options: Any) -> Worker:
        """Another worker with a gated saver."""
        worker = self.bare()
        if self._kind.foreign:
            options.setdefault("store", self.places.claims)

        def gated() -> Any:
            return gate(worker.saver, **options)

        worker.saver = gated() if worker.loop is None else worker.loop.run(_awaited(gated))
        self._stack.callback(_hang_up, worker)
        return worker

    def bare(self) -> Worker:
        """Another worker with a saver that is not gated."""
        loop = None
        if self._kind.awaited:
            loop = Loop()
            self._stack.callback(loop.close)
        opened = self._kind.open(self.places)
        if isinstance(opened, AbstractContextManager):
            saver = self._stack.enter_context(opened)
        else:
            assert loop is not None
            saver = loop.run(opened.__aenter__())
            self._stack.callback(_leave, loop, opened)
        return Worker(saver, loop)

    def setup(self) -> None:
        """Make the tables of the saver and of its gate."""
        saver = self.worker()
        if hasattr(saver.saver, "setup"):
            made = saver.saver.setup()
            if saver.loop is not None:
                saver.loop.run(made)

    def pending(self, graph: Graph, config: Any) -> Any:
        """All that the saver holds of a thread's head."""
        found = graph.worker.call(graph.worker.saver, "get_tuple", config)
        return found.checkpoint, found.metadata, found.pending_writes

    def release(self, graph: Graph, config: Any, **options: Any) -> bool:
        """What failed or was abandoned on a thread is re-opened."""
        return release(graph.compiled, config, **options)

    def thread(self, **options: Any) -> dict[str, Any]:
        """The config of a fresh thread, with the options of a delivery."""
        return on(uuid.uuid4().hex, **options)


def on(thread: str | dict[str, Any], **options: Any) -> dict[str, Any]:
    """The config of `thread`, with the options of a delivery."""
    name = thread if isinstance(thread, str) else thread["configurable"]["thread_id"]
    return {"configurable": {"thread_id": name, **options}}


def _leave(loop: Loop, opened: AbstractAsyncContextManager[Any]) -> None:
    loop.run(opened.__aexit__(None, None, None))


def _hang_up(worker: Worker) -> None:
    """Close the connections of a gate's own, which nothing but its end would close."""
    binding = worker.saver._remit
    for stores, name in ((binding, "store"), (binding, "astore"), (binding.keeper, "renewer")):
        store = vars(stores).get(name)
        closing = None if store is None else store.close()
        if closing is not None and worker.loop is not None:
            worker.loop.run(closing)


async def _awaited(call: Callable[[], T]) -> T:
    return call()
