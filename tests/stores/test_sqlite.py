"""What only an SQLite store can get wrong: its file, its threads, its forks."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import aiosqlite
import pytest

from remit_gates.errors import StoreUnavailable, UsageError
from remit_gates.stores import as_async_store, as_store
from remit_gates.stores._calls import pages
from remit_gates.stores._sqlite_files import _HANDLES
from remit_gates.stores._sqlite_found import _IN_MEMORY
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.sqlite import SqliteStore
from tests.stores import scripts
from tests.stores.records import RUN, claimed, settled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "claims.db"


@pytest.fixture
def store(file: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(file)
    yield store
    store.close()


@pytest.fixture
def other(file: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """Somebody else's connection to the file of `store`."""
    store.setup()
    connection = sqlite3.connect(file, isolation_level=None)
    yield connection
    connection.close()


def test_a_renewal_under_way_keeps_its_claim(store: SqliteStore, other: sqlite3.Connection) -> None:
    store.swap(RUN, None, claimed(1), 0.0)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE remit_gates SET expires = expires + 60")
    # Not committed yet, so whoever reads now must believe that the claim has expired.
    snap = store.read(RUN)
    assert snap.lease_left is not None
    assert snap.lease_left <= 0
    other.execute("COMMIT")
    assert store.swap(RUN, snap.version, claimed(2), 30.0) is None
    assert store.read(RUN).record == claimed(1)


def test_reading_does_not_wait_for_a_writer(store: SqliteStore, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    assert store.read(RUN).version is None
    other.execute("ROLLBACK")


def test_a_lock_that_stays_is_told(file: Path, other: sqlite3.Connection) -> None:
    hasty = SqliteStore(file, timeout=0.05)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        hasty.swap(RUN, None, claimed(1), 30.0)
    other.execute("ROLLBACK")
    assert hasty.swap(RUN, None, claimed(1), 30.0) is not None
    hasty.close()


def test_a_lock_that_goes_is_waited_for(store: SqliteStore, file: Path) -> None:
    # A file that is not in WAL mode yet: changing the mode does not wait by itself.
    holding = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    holding.execute("CREATE TABLE theirs (x)")
    holding.execute("BEGIN EXCLUSIVE")
    results: list[int | None] = []
    thread = threading.Thread(
        target=lambda: results.append(store.swap(RUN, None, claimed(1), 30.0))
    )
    thread.start()
    # The handle is there once the thread is about to open it, or has begun to wait.
    while not store._handles:
        pass
    assert results == []
    holding.execute("COMMIT")
    thread.join()
    assert results == [store.read(RUN).version]
    holding.close()


def test_a_thread_takes_its_connection_along(store: SqliteStore) -> None:
    thread = threading.Thread(target=store.read, args=(RUN,))
    thread.start()
    thread.join()
    gc.collect()
    assert len(store._handles) == 0
    store.read(RUN)
    assert len(store._handles) == 1


def test_a_closed_store_opens_anew(store: SqliteStore) -> None:
    version = store.swap(RUN, None, claimed(1), 30.0)
    store.close()
    assert store.read(RUN).version == version


def test_a_store_that_is_dropped_closes(file: Path) -> None:
    gc.collect()
    before = len(_HANDLES)
    store = SqliteStore(file)
    store.read(RUN)
    del store
    gc.collect()
    assert len(_HANDLES) == before


def test_a_table_that_was_dropped_is_made_again(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    other.executescript("DROP TABLE remit_gates; DROP TABLE remit_gates_schema")
    with pytest.raises(StoreUnavailable, match="no such table"):
        store.read(RUN)
    assert store.read(RUN).version is None


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(StoreUnavailable, match="not a database"):
        SqliteStore(tmp_path / "notes.txt").read(RUN)
    with pytest.raises(StoreUnavailable, match="unable to open"):
        SqliteStore(tmp_path / "nowhere" / "claims.db").read(RUN)


def test_a_key_that_sqlite_cannot_store(store: SqliteStore) -> None:
    with pytest.raises(UsageError):
        store.read(type(RUN)("test", "", "\ud800"))


def test_a_relative_file_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("claims.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.setup()
    assert (tmp_path / "claims.db").exists()
    store.close()


FORK = """
    import os, sys
    from remit_gates.stores.sqlite import SqliteStore
    from tests.stores.records import RUN, claimed, settled

    store = SqliteStore(sys.argv[1])
    version = store.swap(RUN, None, claimed(1), 30.0)
    moved, told = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        version = store.swap(RUN, version, claimed(2), 30.0)
        os.write(moved[1], b"x")
        os.read(told[0], 1)
        version = store.swap(RUN, version, claimed(3), 30.0)
        os._exit(0 if version else 1)
    os.read(moved[0], 1)
    # The last connection of the parent goes, and with it the log, if nobody is in its way.
    assert store.read(RUN).record == claimed(2)
    store.close()
    os.write(told[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    print(store.read(RUN).record == claimed(3))
    store.close()
"""


def test_a_fork_loses_nothing(file: Path) -> None:
    assert scripts.run(FORK, str(file)) == "True"


def test_a_fork_waits_for_other_threads(file: Path) -> None:
    out = scripts.run(
        """
        import os, sys, threading, warnings
        from remit_gates.stores.sqlite import SqliteStore
        from tests.stores.records import RUN, claimed

        warnings.simplefilter("ignore", DeprecationWarning)
        store = SqliteStore(sys.argv[1])
        version = store.swap(RUN, None, claimed(1), 30.0)
        over = threading.Event()

        def busy():
            while not over.is_set():
                store.renew(RUN, 1, 30.0)

        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if store.read(RUN).version == version else 1)
            assert os.waitpid(child, 0)[1] == 0
        over.set()
        for thread in threads:
            thread.join()
        store.close()
        print("done")
        """,
        str(file),
    )
    assert out == "done"


def test_a_memory_store_is_not_a_forks(file: Path) -> None:
    out = scripts.run(
        """
        import os
        from remit_gates.errors import StoreMisconfigured
        from remit_gates.stores.memory import MemoryStore
        from tests.stores.records import RUN, claimed

        unused, store = MemoryStore(), MemoryStore()
        store.swap(RUN, None, claimed(1), 30.0)
        child = os.fork()
        if child == 0:
            unused.read(RUN)
            try:
                store.read(RUN)
            except StoreMisconfigured:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        print(store.read(RUN).record == claimed(1))
        """
    )
    assert out == "True"


def test_beside_a_connection(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.execute("INSERT INTO theirs VALUES (1)")
    store = as_store(connection)
    assert isinstance(store, SqliteStore)
    assert Path(store.path) == file
    # Its transaction goes on undisturbed, and holds the lock.
    assert connection.in_transaction
    connection.rollback()
    assert store.swap(RUN, None, settled(1), None) is not None
    store.close()
    connection.close()


def test_connections_to_one_database_in_memory_share_a_store() -> None:
    uri = "file:shared?mode=memory&cache=shared"
    one, two = (sqlite3.connect(uri, uri=True) for _ in range(2))
    two.row_factory = sqlite3.Row
    alone = sqlite3.connect(":memory:")
    assert as_store(one) is as_store(two) is as_store(one)
    assert as_store(alone) is not as_store(one)
    assert as_store(alone) is as_store(alone)
    kept = as_store(one)
    one.close()
    assert as_store(two) is kept
    two.close()
    alone.close()


def test_a_store_in_memory_goes_with_its_connection() -> None:
    gc.collect()
    before = len(_IN_MEMORY)
    connection = sqlite3.connect(":memory:")
    as_store(connection).swap(RUN, None, claimed(1), 30.0)
    gc.collect()
    assert as_store(connection).read(RUN).record == claimed(1)
    connection.close()
    del connection
    gc.collect()
    assert len(_IN_MEMORY) == before


def test_a_transaction_in_memory_is_left_alone() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE theirs (x)")
    connection.execute("INSERT INTO theirs VALUES (1)")
    store = as_store(connection)
    assert connection.in_transaction
    connection.rollback()
    assert as_store(connection) is store
    assert connection.execute("SELECT * FROM theirs").fetchall() == []
    connection.close()


def test_beside_an_aiosqlite_connection(file: Path) -> None:
    async def check() -> None:
        async with aiosqlite.connect(file) as connection:
            store = as_async_store(connection)
            with pytest.raises(UsageError, match="Await setup"):
                store.renewer()
            version = await store.swap(RUN, None, claimed(1), 30.0)
            assert store.renewer().read(RUN).version == version
            await store.close()
        async with aiosqlite.connect(":memory:") as connection:
            one, two = as_async_store(connection), as_async_store(connection)
            await one.setup()
            await two.setup()
            assert isinstance(one.renewer(), MemoryStore)
            assert one.renewer() is two.renewer()

    asyncio.run(check())


def test_an_aiosqlite_connection_must_be_open(file: Path) -> None:
    async def check() -> None:
        with pytest.raises(UsageError, match="not open"):
            await as_async_store(aiosqlite.connect(file)).read(RUN)

    asyncio.run(check())


def test_a_page_is_a_range_of_the_key(store: SqliteStore, other: sqlite3.Connection) -> None:
    store.setup()
    for after in (None, RUN):
        page = next(pages("test", None, after, True, 60.0))
        sql = f"EXPLAIN QUERY PLAN {store._sql[page.name]}"
        [(*_, step)] = other.execute(sql, {**page.params, "table": "remit_gates"}).fetchall()
        assert "(framework,namespace,run)>(?,?,?) AND (framework,namespace)<(?,?)" in step
