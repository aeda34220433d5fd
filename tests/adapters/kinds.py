"""The kinds of saver that are gated: each opens one more saver over one shared database."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from langgraph.checkpoint.memory import InMemorySaver

from tests.adapters.foreign import CopyingSaver, ForeignSaver


@dataclass
class Places:
    """Where the workers of one session keep their checkpoints."""

    folder: Path
    postgres: Callable[..., str]
    redis: Callable[[], str] = lambda: ""
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
async def _postgres_async_pool(places: Places) -> AsyncIterator[Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg_pool import AsyncConnectionPool

    async with AsyncConnectionPool(places.postgres(), **_pool_options()) as pool:
        yield AsyncPostgresSaver(pool)


@contextlib.contextmanager
def _redis(places: Places) -> Iterator[Any]:
    from langgraph.checkpoint.redis import RedisSaver

    with RedisSaver.from_conn_string(places.redis()) as saver:
        # Each saver has to be set up, whether or not its indexes are there.
        saver.setup()
        yield saver


def _redis_async(places: Places) -> Opened:
    from langgraph.checkpoint.redis.aio import AsyncRedisSaver

    return AsyncRedisSaver.from_conn_string(places.redis())


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
    "redis": Kind(_redis),
    "redis-async": Kind(_redis_async, awaited=True),
    "copying": Kind(_copying, foreign=True),
    "copying-async": Kind(_copying, awaited=True, foreign=True),
    "foreign": Kind(_foreign, foreign=True),
    "foreign-async": Kind(_foreign, awaited=True, foreign=True),
}
