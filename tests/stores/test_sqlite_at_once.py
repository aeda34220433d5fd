"""An event loop's own thread does only what cannot wait; a lock is waited for elsewhere."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
import wrapt

from remit_gates._port import StorePort
from remit_gates.errors import SetupRequired, StoreUnavailable
from remit_gates.stores import as_async_store, open_async_store
from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.sqlite import SqliteStore
from tests.stores.records import RUN, claimed, settled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "claims.db"


@pytest.fixture
def store(file: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(file)
    store.setup()
    yield store
    store.close()


@pytest.fixture
def hurried(store: SqliteStore) -> Iterator[Any]:
    hurried = store.hurried()
    yield hurried
    hurried.close()


@pytest.fixture
def other(file: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(file, isolation_level=None)
    yield connection
    connection.close()


def test_it_sees_and_changes_the_same_records(store: SqliteStore, hurried: Any) -> None:
    version = store.swap(RUN, None, claimed(1), 30.0)
    assert hurried.read(RUN).record == claimed(1)
    assert hurried.swap(RUN, version, settled(1), None, durable=False) is not None
    assert store.read(RUN).record == settled(1)


def test_it_waits_for_no_lock(hurried: Any, other: sqlite3.Connection) -> None:
    # Whatever the fixture, a timeout would be noticed: it is five seconds elsewhere.
    assert hurried._timeout == 0
    other.execute("BEGIN IMMEDIATE")
    assert hurried.read(RUN).version is None
    with pytest.raises(StoreUnavailable, match="locked"):
        hurried.swap(RUN, None, claimed(1), 30.0, durable=False)
    other.execute("ROLLBACK")
    assert hurried.swap(RUN, None, claimed(1), 30.0, durable=False) is not None


def test_it_waits_for_no_disk(store: SqliteStore, hurried: Any) -> None:
    with pytest.raises(StoreUnavailable, match="durable"):
        hurried.swap(RUN, None, claimed(1), 30.0)
    assert store.read(RUN).version is None
    # Nor does it bring the log into the file, which waits too.
    hurried.swap(RUN, None, claimed(1), 30.0, durable=False)
    handle = hurried._handle()
    with handle.lock:
        found = [
            handle.connection().execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "wal_autocheckpoint")
        ]
    assert found == [1, 0]


def test_it_makes_no_file(file: Path) -> None:
    hurried = SqliteStore(file).hurried()
    with pytest.raises(StoreUnavailable):
        hurried.read(RUN)
    assert not file.exists()
    sqlite3.connect(file).execute("PRAGMA journal_mode = WAL").close()
    with pytest.raises(SetupRequired):
        hurried.read(RUN)
    hurried.close()


def test_it_wants_a_write_ahead_log(
    file: Path, store: SqliteStore, other: sqlite3.Connection
) -> None:
    store.close()
    other.execute("PRAGMA journal_mode = DELETE").fetchall()
    hurried = store.hurried()
    with pytest.raises(StoreUnavailable, match="write-ahead"):
        hurried.read(RUN)
    hurried.close()


def test_a_lock_is_waited_for_while_the_loop_goes_on(file: Path, other: sqlite3.Connection) -> None:
    """Whoever holds the lock here is the event loop itself: waiting on it would not end."""

    async def check() -> None:
        store = open_async_store(f"sqlite:///{file}")
        port = StorePort(store, asyncio.sleep)
        other.execute("BEGIN IMMEDIATE")
        swapping = asyncio.ensure_future(port.swap(RUN, None, claimed(1), 30.0, False))
        await asyncio.sleep(0)
        assert port.read(RUN).version is None
        other.execute("COMMIT")
        version = await swapping
        assert port.read(RUN).version == version
        assert isinstance(port.swap(RUN, version, settled(1), None, False), int)
        await store.close()

    asyncio.run(check())


def test_what_is_done_before_the_file_is_made_is_awaited(file: Path) -> None:
    async def check() -> None:
        store = open_async_store(f"sqlite:///{file}")
        port = StorePort(store, asyncio.sleep)
        assert (await port.read(RUN)).version is None
        assert port.read(RUN).version is None
        await store.close()

    asyncio.run(check())


def test_beside_an_aiosqlite_connection(file: Path) -> None:
    async def check() -> None:
        async with aiosqlite.connect(file) as connection:
            store = as_async_store(connection)
            port = StorePort(store, asyncio.sleep)
            assert (await port.read(RUN)).version is None
            assert port.read(RUN).version is None
            await store.close()

    asyncio.run(check())


def test_what_must_reach_the_disk_is_not_tried_here(file: Path, store: SqliteStore) -> None:
    """The file might have to be opened for that, each time."""

    async def check() -> None:
        threaded = ThreadedStore(store)
        hurried = threaded.at_once(durable=False)
        assert hurried is not None
        assert threaded.at_once(durable=True) is None
        port = StorePort(threaded, asyncio.sleep)
        version = await port.swap(RUN, None, claimed(1), 30.0, True)
        assert not hurried._handle()._connection  # type: ignore[attr-defined]
        assert port.swap(RUN, version, settled(1), None, False) is not None
        await threaded.close()

    asyncio.run(check())


def test_what_is_in_memory_is_all_done_at_once() -> None:
    port = StorePort(ThreadedStore(MemoryStore(), inline=True), asyncio.sleep)
    version = port.swap(RUN, None, claimed(1), 30.0, True)
    assert port.read(RUN).version == version


def test_what_wraps_a_store_is_asked_itself() -> None:
    """It hands on the attributes of the store, and what it does to its calls must be done."""

    class Counting(wrapt.ObjectProxy):  # type: ignore[type-arg]
        reads = 0

        async def read(self, run: Any) -> Any:
            Counting.reads += 1
            return await self.__wrapped__.read(run)

    async def check() -> None:
        wrapped: Any = Counting(ThreadedStore(MemoryStore(), inline=True))
        port = StorePort(wrapped, asyncio.sleep)
        assert (await port.read(RUN)).version is None

    asyncio.run(check())
    assert Counting.reads == 1
