"""Checkpointers of either database and colour, from one URL, gated or as they come."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from importlib import import_module
from typing import Any


Wrap = Callable[[Any], Any]
"""What turns a checkpointer into the one that a graph is compiled with."""


def wrapper(name: str, *, store: Any = None, **policy: Any) -> Wrap:
    """What `name` does to a checkpointer: `stock` nothing, `gate` what this project is
    about, and `remit` what the package remit-contract does."""
    if name == "stock":
        return lambda made: made
    if name == "remit":
        saver_class = import_module("remit.langgraph_shim").saver_class
        return lambda made: saver_class(type(made))(made.conn, remit_cross_process_gate=True)
    from remit_gates import Policy
    from remit_gates.langgraph import gate

    return lambda made: gate(made, store=store, policy=Policy(**policy))


def path_of(url: str) -> str:
    """The file of an sqlite:/// URL."""
    return url.removeprefix("sqlite:///")


@contextmanager
def saver(url: str, wrap: Wrap, *, pooled: int = 0, setup: bool = True) -> Iterator[Any]:
    """A checkpointer for sync callers.

    Args:
        url: Of the database.
        wrap: `gate`, or whatever is to be done with it.
        pooled: Size of the pool that it gets its connections from; 0 for one connection.
        setup: Whether to make the tables. One process does, before the others come.
    """
    if url.startswith("redis://"):
        from langgraph.checkpoint.redis import RedisSaver

        # Its client has a pool anyway; and each saver must be set up, whoever was before.
        with RedisSaver.from_conn_string(url) as made:
            yield _ready(wrap(made), True)
        return
    if not url.startswith("postgresql://"):
        from langgraph.checkpoint.sqlite import SqliteSaver

        with closing(sqlite3.connect(path_of(url), timeout=30.0, check_same_thread=False)) as conn:
            yield _ready(wrap(SqliteSaver(conn)), setup)
        return
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    if not pooled:
        with PostgresSaver.from_conn_string(url) as made:
            yield _ready(wrap(made), setup)
        return
    options: Any = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, min_size=pooled, max_size=pooled, kwargs=options, open=True) as pool:
        pool.wait()
        lent: Any = pool
        yield _ready(wrap(PostgresSaver(lent)), setup)


@asynccontextmanager
async def async_saver(url: str, wrap: Wrap, *, pooled: int = 0) -> AsyncIterator[Any]:
    """A checkpointer for async callers; see `saver`."""
    if url.startswith("redis://"):
        from langgraph.checkpoint.redis.aio import AsyncRedisSaver

        async with AsyncRedisSaver.from_conn_string(url) as made:
            gated = wrap(made)
            await gated.setup()
            yield gated
        return
    if not url.startswith("postgresql://"):
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(path_of(url)) as made:
            gated = wrap(made)
            await gated.setup()
            yield gated
        return
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    if not pooled:
        async with AsyncPostgresSaver.from_conn_string(url) as made:
            gated = wrap(made)
            await gated.setup()
            yield gated
        return
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(
        url, min_size=pooled, max_size=pooled, kwargs=options, open=False
    ) as pool:
        await pool.wait()
        lent: Any = pool
        gated = wrap(AsyncPostgresSaver(lent))
        await gated.setup()
        yield gated


def _ready(made: Any, setup: bool) -> Any:
    if setup:
        made.setup()
    return made
