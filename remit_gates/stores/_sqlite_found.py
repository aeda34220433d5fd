"""The store beside an SQLite connection that somebody else owns: one database, one store.

A file is opened anew by its name, and the connection is not used again. A database in
memory cannot be opened twice, so its records live in a `MemoryStore` that everybody finds
who passes a connection to that database.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import UsageError
from remit_gates.stores._protocol import AsyncStore, Entry, Store
from remit_gates.stores._steps import Do, Steps, aperform, perform
from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.sqlite import SqliteStore


_IN_MEMORY: Final[weakref.WeakValueDictionary[str, MemoryStore]] = weakref.WeakValueDictionary()
"""The store of each database in memory, by the mark in that database."""


def store_of(connection: sqlite3.Connection) -> Store:
    """The store beside `connection`, for sync callers."""
    return perform(_find(connection))


class FoundStore(AsyncStore):
    """The store beside an aiosqlite connection, which tells of its file only when awaited.

    Args:
        connection: An open aiosqlite connection.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._store: ThreadedStore | None = None

    def __repr__(self) -> str:
        return f"<FoundStore of {self._store or 'a database not yet asked for'}>"

    async def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return await (await self._found()).read(run)

    async def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        return await (await self._found()).swap(run, expected, record, lease, durable)

    async def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return await (await self._found()).renew(run, token, lease)

    async def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return await (await self._found()).delete(run)

    async def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> AsyncIterator[Entry]:
        """See `Store.scan`."""
        store = await self._found()
        async for entry in store.scan(
            framework, namespace, after=after, claimed=claimed, idle=idle
        ):
            yield entry

    async def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        return await (await self._found()).prune(older_than)

    async def setup(self) -> None:
        """See `Store.setup`."""
        await (await self._found()).setup()

    async def close(self) -> None:
        """See `Store.close`."""
        if self._store is not None:
            await self._store.close()

    def at_once(self, durable: bool) -> Store | None:
        """See `ThreadedStore`."""
        return None if self._store is None else self._store.at_once(durable)

    def renewer(self) -> Store:
        """See `Store.renewer`. Only once something was awaited: a claim was, by then."""
        if self._store is None:
            raise UsageError(
                "This store does not know its database file before its first operation was"
                " awaited. Await setup() first, or pass the URL of the store."
            )
        return self._store.renewer()

    async def _found(self) -> ThreadedStore:
        if self._store is None:
            try:
                store = await aperform(_find(self._connection))
            except ValueError as error:
                raise UsageError(
                    "The aiosqlite connection is not open. Await it, then use the store."
                ) from error
            self._store = ThreadedStore(store, inline=isinstance(store, MemoryStore))
        return self._store


def _find(connection: Any) -> Steps[Store]:
    """Ask `connection`, of either colour, where its database is."""
    rows = yield from _rows(connection, "PRAGMA database_list")
    path = next(file for _, name, file in rows if name == "main")
    # A database in memory may have a name, but no file.
    if path and Path(path).exists():
        return SqliteStore(path)
    store: MemoryStore | None = yield from _kept(connection)
    if store is not None:
        return store
    mark = secrets.token_hex(16)
    # Within a transaction the mark could be rolled back, and two stores would serve one
    # database. This connection alone then knows the store.
    if not connection.in_transaction:
        # Of several connections to a shared database only one creates the table, so its
        # text holds one mark for all. Nothing but the schema is written: an insert would
        # open a transaction that is not ours to end.
        yield Do(
            connection.execute,
            f"CREATE TABLE IF NOT EXISTS remit_gates_memory (mark TEXT DEFAULT '{mark}')",
        )
        rows = yield from _rows(
            connection, "SELECT sql FROM sqlite_master WHERE name = 'remit_gates_memory'"
        )
        found = re.search("'([0-9a-f]{32})'", rows[0][0])
        mark = found.group(1) if found else mark
    store = _IN_MEMORY.setdefault(mark, MemoryStore())
    # The connection keeps the store alive, and lets go of it when it is closed.
    yield Do(connection.create_function, "remit_gates_memory_mark", 0, _keeper(mark, store))
    return store


def _kept(connection: Any) -> Steps[MemoryStore | None]:
    """The store that this very connection keeps, if it keeps one."""
    try:
        rows = yield from _rows(connection, "SELECT remit_gates_memory_mark()")
    except sqlite3.OperationalError:
        return None
    return _IN_MEMORY.get(rows[0][0])


def _keeper(mark: str, store: MemoryStore) -> Any:
    def remit_gates_memory_mark(kept: MemoryStore = store) -> str:
        return mark

    return remit_gates_memory_mark


def _rows(connection: Any, sql: str) -> Steps[list[Any]]:
    # The rows come as the user's row factory makes them, so only their order is relied on.
    cursor = yield Do(connection.execute, sql)
    rows = yield Do(cursor.fetchall)
    yield Do(cursor.close)
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]
