"""Workers that share one database: each has a saver, a gate and connections of its own.

A test is written once. Whether its graph is called or awaited is the worker's business: the
calls of an async worker run on its own event loop, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from langgraph.checkpoint.memory import InMemorySaver

from remit_gates.langgraph import gate, release
from tests.adapters.foreign import CopyingSaver, ForeignSaver


T = TypeVar("T")

PATIENCE: Final = 60.0
"""Seconds after which something that must happen has not."""


@dataclass
class Places:
    """Where the workers of one session keep their checkpoints."""

    folder: Path
    postgres: Callable[..., str]
    memory: InMemorySaver = field(default_factory=InMemorySaver)
    foreign: InMemorySaver = field(default_factory=InMemorySaver)

    @property
    def sqlite(self) -> str:
        return str(self.folder / "checkpoints.db")

    @property
    def claims(self) -> str:
        """URL of the store that a foreign saver is gated with."""
        return f"sqlite:///{self.folder / 'claims.db'}"


Opened = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]


@contextlib.contextmanager
def _memory(places: Places) -> Iterator[Any]:
    yield places.memory


@contextlib.contextmanager
def _foreign(places: Places) -> Iterator[Any]:
    yield ForeignSaver(places.foreign)


def _sqlite(places: Places) -> Opened:
    from langgraph.checkpoint.sqlite import SqliteSaver

    return SqliteSaver.from_conn_string(places.sqlite)


def _sqlite_async(places: Places) -> Opened:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    return AsyncSqliteSaver.from_conn_string(places.sqlite)


def _postgres(places: Places) -> Opened:
    from langgraph.checkpoint.postgres import PostgresSaver

    return PostgresSaver.from_conn_string(places.postgres())


def _postgres_async(places: Places) -> Opened:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    return AsyncPostgresSaver.from_conn_string(places.postgres())


def _fresh(places: Places, name: str) -> Opened:
    from langgraph.checkpoint.postgres import PostgresSaver

    return PostgresSaver.from_conn_string(places.postgres(name))


def _fresh_async(places: Places, name: str) -> Opened:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    return AsyncPostgresSaver.from_conn_string(places.postgres(name))


@contextlib.contextmanager
def _copying(places: Places) -> Iterator[Any]:
    yield CopyingSaver(places.foreign)


def _pool_options() -> dict[str, Any]:
    from psycopg.rows import dict_row

    connection = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return {"min_size": 1, "max_size": 4, "open": False, "kwargs": connection}


@contextlib.contextmanager
def _postgres_pool(places: Places) -> Iterator[Any]:
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg_pool import ConnectionPool

    with ConnectionPool(places.postgres(), **_pool_options()) as pool:
        yield PostgresSaver(pool)


@contextlib.asynccontextmanager
async def _postgres_async_pool(places: Places) -> Any:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg_pool import AsyncConnectionPool

    async with AsyncConnectionPool(places.postgres(), **_pool_options()) as pool:
        yield AsyncPostgresSaver(pool)


@dataclass(frozen=True)
class Kind:
    """A saver of one colour."""

    open: Callable[[Places], Opened]
    awaited: bool = False
    foreign: bool = False


KINDS: Final[dict[str, Kind]] = {
    "memory": Kind(_memory),
    "memory-async": Kind(_memory, awaited=True),
    "sqlite": Kind(_sqlite),
    "sqlite-async": Kind(_sqlite_async, awaited=True),
    "postgres": Kind(_postgres),
    "postgres-pool": Kind(_postgres_pool),
    "postgres-async": Kind(_postgres_async, awaited=True),
    "postgres-async-pool": Kind(_postgres_async_pool, awaited=True),
    "fresh-postgres": Kind(functools.partial(_fresh, name="sync")),
    "fresh-postgres-async": Kind(functools.partial(_fresh_async, name="async"), awaited=True),
    "copying": Kind(_copying, foreign=True),
    "copying-async": Kind(_copying, awaited=True, foreign=True),
    "foreign": Kind(_foreign, foreign=True),
    "foreign-async": Kind(_foreign, awaited=True, foreign=True),
}


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
    """

    def __init__(self, name: str, places: Places, stack: contextlib.ExitStack) -> None:
        self.name = name
        self._kind = KINDS[name]
        self._places = places
        self._stack = stack

    def worker(self, **options: Any) -> Worker:
        """Another worker with a gated saver."""
        worker = self.bare()
        if self._kind.foreign:
            options.setdefault("store", self._places.claims)

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
        opened = self._kind.open(self._places)
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
