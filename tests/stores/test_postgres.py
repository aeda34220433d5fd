"""What only a Postgres store can get wrong: its session, its connections, its server."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace
from itertools import islice
from typing import Any

import psycopg
import psycopg_pool
import pytest
from psycopg.conninfo import conninfo_to_dict

from remit_gates.errors import SetupRequired, StoreUnavailable, UsageError
from remit_gates.stores import as_async_store, as_store, open_store
from remit_gates.stores._calls import FIRST, PAGE, pages
from remit_gates.stores._pg_sources import PREPARE_AFTER
from remit_gates.stores.postgres import AsyncPostgresStore, PostgresStore
from remit_gates.testing import check_store
from tests.servers import Postgres
from tests.stores.checks import (
    connects_anew_in_a_fork,
    costs,
    serves_several_event_loops,
    tells_async_callers_that_its_server_hangs,
    tells_that_its_server_hangs,
)
from tests.stores.proxy import Proxy, proxy
from tests.stores.records import RUN, claimed, settled


@pytest.fixture
def store(postgres_url: str) -> PostgresStore:
    store = PostgresStore(postgres_url)
    store.setup()
    return store


def test_each_operation_is_one_statement(store: PostgresStore, through: Proxy) -> None:
    counted = PostgresStore(through.url)
    counted.read(RUN)
    assert costs(counted, lambda: through.executed) == [1, 1, 1, 1, 1, 1, 1, 1]
    assert through.opened == 1
    counted.close()


def test_a_scan_asks_only_for_what_is_wanted(store: PostgresStore, through: Proxy) -> None:
    for number in range(FIRST + PAGE + 1):
        store.swap(replace(RUN, run=f"{number:04}"), None, settled(1), None, False)
    counted = PostgresStore(through.url)
    counted.read(RUN)
    before = through.executed
    assert len(list(islice(counted.scan(), FIRST))) == FIRST
    assert through.executed - before == 1
    # Two full pages, and one that is not, so it was the last.
    assert len(list(counted.scan())) == FIRST + PAGE + 1
    assert through.executed - before == 4
    assert list(counted.scan(claimed=True)) == []
    assert through.executed - before == 5
    counted.close()
    store.close()


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"framework": "test"},
        {"framework": "test", "namespace": ""},
        {"after": replace(RUN, run="0700")},
        {"framework": "test", "after": replace(RUN, run="0700")},
        {"claimed": False, "idle": 0.0},
    ],
    ids=lambda choice: "-".join(choice) or "all",
)
def test_a_page_is_a_range_of_the_key(
    postgres_url: str, store: PostgresStore, choice: dict[str, Any]
) -> None:
    """No page reads what lies before it or sorts: its price is that of its own rows."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO remit_gates SELECT 'test', '', to_char(n, 'FM0000'), 1, NULL, NULL,"
            " now() - interval '1 day', '{\"format\":1}' FROM generate_series(0, 9999) AS n"
        )
        connection.execute("ANALYZE remit_gates")
        where = {"framework": None, "namespace": None, "after": None, "claimed": None, "idle": None}
        page = next(pages(**{**where, **choice}))
        sql = b"EXPLAIN (ANALYZE, TIMING OFF) " + store._flows._sql[page.name]
        rows = connection.execute(sql, page.params).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "Index Scan using remit_gates_pkey" in plan, plan
    assert "Sort" not in plan, plan
    assert "Removed by Filter" not in plan or "Rows Removed by Filter: 1\n" in plan, plan
    store.close()


def test_nothing_stays_in_the_session(postgres_url: str, store: PostgresStore) -> None:
    with psycopg_pool.ConnectionPool(
        postgres_url, min_size=1, max_size=1, kwargs={"autocommit": True}, open=True
    ) as pool:
        borrowing = PostgresStore(pool)
        version = borrowing.swap(RUN, None, claimed(1), 30.0)
        for _ in range(8):
            borrowing.read(RUN)
            version = borrowing.swap(RUN, version, claimed(1), 30.0, False)
            borrowing.renew(RUN, 1, 30.0)
        with pool.connection() as connection:
            assert connection.execute("SELECT 1 FROM pg_prepared_statements").fetchall() == []
            assert connection.execute("SHOW synchronous_commit").fetchall() == [("on",)]
            locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"
            assert connection.execute(locks).fetchall() == []
            assert "wait" not in vars(connection)
        borrowing.close()


def _resumed(store: PostgresStore, times: int) -> None:
    """What so many resumes ask a store for, with a heartbeat each, and a deletion."""
    for _ in range(times):
        assert store.read(RUN).version is None
        version = store.swap(RUN, None, claimed(1), 30.0)
        assert store.renew(RUN, 1, 30.0)
        assert store.swap(RUN, version, settled(1), None, False) is not None
        store.delete(RUN)


def test_statements_are_prepared_in_a_session_of_the_servers_own(
    store: PostgresStore, through: Proxy
) -> None:
    direct = PostgresStore(through.url)
    _resumed(direct, PREPARE_AFTER)
    assert through.prepared == 0
    for number in (1, 2):
        _resumed(direct, 1)
        # Each is prepared the first time, and executed by its name each time.
        assert through.prepared >= 4 * number
    before = through.executed, through.prepared
    list(direct.scan())
    direct.prune(3600.0)
    assert through.executed - before[0] == 2
    assert through.prepared == before[1]
    direct.close()
    store.close()


def test_nothing_is_prepared_through_a_pooler(postgres_url: str, store: PostgresStore) -> None:
    """Its sessions are not those of the server: what was prepared in one may be looked for
    in another, where the same name may be somebody else's statement."""
    with proxy(postgres_url, pooler=True) as through:
        pooled = PostgresStore(through.url)
        _resumed(pooled, 3 * PREPARE_AFTER)
        assert through.executed >= 5 * 3 * PREPARE_AFTER
        assert through.prepared == 0
        pooled.close()
    store.close()


def test_a_table_that_changed_does_without_what_was_prepared(
    postgres_url: str, store: PostgresStore
) -> None:
    version = store.swap(RUN, None, claimed(1), 30.0)
    for _ in range(2 * PREPARE_AFTER):
        assert store.read(RUN).version == version
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE remit_gates ALTER version TYPE numeric")
    assert store.read(RUN).version == version
    assert store.read(RUN).record == claimed(1)
    store.close()


def test_only_a_durable_swap_waits_for_the_disk(postgres_url: str, store: PostgresStore) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # A deferred trigger runs at the commit, and sees how that is going to be made.
        connection.execute("CREATE TABLE seen (setting text)")
        connection.execute(
            "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL;"
            " END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON remit_gates"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()"
        )
        for default in ("local", "off"):
            connection.execute("TRUNCATE seen, remit_gates")
            name = connection.info.dbname
            connection.execute(
                f'ALTER DATABASE "{name}" SET synchronous_commit = {default}'.encode()
            )
            store.close()
            version = store.swap(RUN, None, claimed(1), 30.0)
            version = store.swap(RUN, version, claimed(1), 30.0, False)
            version = store.swap(RUN, version, claimed(1), 30.0, True)
            store.renew(RUN, 1, 30.0)
            durable = "on" if default == "off" else default
            rows = connection.execute("SELECT setting FROM seen").fetchall()
            assert [row[0] for row in rows] == [durable, "off", durable, "off"]
    store.close()


def test_a_renewal_under_way_keeps_its_claim(postgres_url: str, store: PostgresStore) -> None:
    store.swap(RUN, None, claimed(1), 0.0)
    with psycopg.connect(postgres_url) as renewing:
        renewing.execute("UPDATE remit_gates SET expires = clock_timestamp() + interval '1 min'")
        # Not committed yet, so whoever reads now must believe that the claim has expired.
        snap = store.read(RUN)
        assert snap.lease_left is not None
        assert snap.lease_left <= 0
        renewing.commit()
    assert store.swap(RUN, snap.version, claimed(2), 30.0) is None
    assert store.read(RUN).record == claimed(1)
    store.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_races_at_strict_isolation(postgres_url: str, level: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        sql = f'ALTER DATABASE "{connection.info.dbname}" SET default_transaction_isolation ='
        connection.execute(f"{sql} '{level}'".encode())
    check_store(
        lambda: PostgresStore(postgres_url),
        only=("an_insert_wins_once", "a_swap_wins_once", "an_expired_claim_is_taken_once"),
    ).raise_for_failures()


def test_a_restart_goes_unnoticed(postgres: Postgres, store: PostgresStore) -> None:
    version = store.swap(RUN, None, claimed(1), 30.0)
    postgres.restart()
    version = store.swap(RUN, version, claimed(2), 30.0)
    assert version is not None
    postgres.restart()
    assert store.read(RUN).version == version
    store.close()


def test_a_restart_goes_unnoticed_in_a_pool(postgres: Postgres, postgres_url: str) -> None:
    with psycopg_pool.ConnectionPool(postgres_url, min_size=2, max_size=2, open=True) as pool:
        pool.wait()
        store = PostgresStore(pool)
        store.setup()
        version = store.swap(RUN, None, claimed(1), 30.0)
        postgres.restart()
        assert store.swap(RUN, version, claimed(2), 30.0) is not None


def test_a_server_that_hangs_is_told(
    postgres: Postgres, postgres_url: str, store: PostgresStore
) -> None:
    tells_that_its_server_hangs(PostgresStore(postgres_url, timeout=1.0), postgres.freeze)
    store.close()


def test_a_server_that_hangs_is_told_to_async_callers(
    postgres: Postgres, postgres_url: str, store: PostgresStore
) -> None:
    store.swap(RUN, None, claimed(1), 30.0)
    slow = AsyncPostgresStore(postgres_url, timeout=1.0)
    asyncio.run(tells_async_callers_that_its_server_hangs(slow, postgres.freeze))
    store.close()


def test_a_lost_answer_to_a_read_is_asked_for_again(store: PostgresStore, through: Proxy) -> None:
    once = PostgresStore(through.url)
    once.read(RUN)
    through.cut, through.once = b"LEFT JOIN", True
    assert once.read(RUN).version is None
    assert through.cut is None
    assert through.opened == 2
    once.close()
    store.close()


def test_the_table_must_be_set_up(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    for operation in (lambda: store.read(RUN), lambda: store.swap(RUN, None, settled(1), None)):
        with pytest.raises(SetupRequired, match=r"store\.setup\(\).*`remit-gates setup URL`"):
            operation()
    PostgresStore(postgres_url).setup()
    assert store.read(RUN).version is None
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP TABLE remit_gates")
    with pytest.raises(SetupRequired):
        store.read(RUN)
    store.close()


def test_a_connection_is_only_asked_for_the_way(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT 1")
        with connection.lock:
            store = as_store(connection)
            store.setup()
            assert store.swap(RUN, None, claimed(1), 30.0) is not None
        # Its transaction is still its own.
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        store.close()


def test_an_async_connection_serves_both_colours(postgres_url: str) -> None:
    async def check() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
            store = as_async_store(connection)
            await store.setup()
            version = await store.swap(RUN, None, claimed(1), 30.0)
            sync = as_store(connection)
            assert (await asyncio.to_thread(sync.read, RUN)).version == version
            sync.close()
            await store.close()

    asyncio.run(check())


def test_the_renewer_does_not_wait_for_the_pool(postgres_url: str, store: PostgresStore) -> None:
    store.swap(RUN, None, claimed(1), 30.0)
    with psycopg_pool.ConnectionPool(postgres_url, min_size=1, max_size=1, open=True) as pool:
        borrowing = PostgresStore(pool, timeout=1.0)
        with pool.connection():
            assert borrowing.renewer().renew(RUN, 1, 30.0)
            assert borrowing.renewer() is borrowing.renewer()
            with pytest.raises(StoreUnavailable):
                borrowing.read(RUN)
        borrowing.close()
    store.close()


def test_one_async_store_in_several_event_loops(postgres_url: str, store: PostgresStore) -> None:
    store.swap(RUN, None, claimed(1), 30.0)
    shared = AsyncPostgresStore(postgres_url)
    serves_several_event_loops(shared)
    asyncio.run(shared.close())
    store.close()


def test_a_cancelled_operation_leaves_the_store_whole(
    postgres_url: str, store: PostgresStore
) -> None:
    async def check() -> None:
        small = AsyncPostgresStore(postgres_url, size=1)
        version = await small.swap(RUN, None, claimed(1), 30.0)
        async with await psycopg.AsyncConnection.connect(postgres_url) as locking:
            await locking.execute("SELECT 1 FROM remit_gates FOR UPDATE")
            waiting = asyncio.create_task(small.swap(RUN, version, claimed(2), 30.0))
            await _until_blocked(postgres_url)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert (await small.read(RUN)).version == version
        await small.close()

    asyncio.run(check())
    store.close()


def test_a_fork_has_connections_of_its_own(postgres_url: str, store: PostgresStore) -> None:
    connects_anew_in_a_fork(postgres_url)
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:hunter2@127.0.0.1:1/db",
        "postgresql://bob:hunter2@127.0.0.1:one/db",
        "postgresql://bob:hunter2@[::/db",
        "postgresql://bob:hunter2@/db?host=/nowhere&nonsense=hunter2",
        "postgresql://bob@/db?host=/nowhere&password=hunter2",
        "host=/nowhere password=hunter2 dbname",
    ],
)
def test_no_message_holds_a_credential(url: str) -> None:
    with pytest.raises((UsageError, StoreUnavailable)) as caught:
        PostgresStore(url).read(RUN)
    # A traceback shows the source line of this test, which names a variable only.
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_key_that_postgres_cannot_store(store: PostgresStore) -> None:
    for name in ("a\x00b", "\ud800"):
        with pytest.raises(UsageError):
            store.swap(replace(RUN, run=name), None, claimed(1), 30.0)
        with pytest.raises(UsageError):
            store.read(replace(RUN, run=name))
    assert store.read(RUN).version is None
    store.close()


def test_no_connection_outlives_its_store(postgres: Postgres, through: Proxy) -> None:
    store = open_store(through.url if "://" in through.url else _as_url(through))
    store.setup()
    store.close()
    with psycopg.connect(through.url) as connection:
        rows = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'remit-gates' AND state <> 'active'"
        ).fetchall()
        assert len(rows) <= 1
    assert through.opened == 2


def _as_url(through: Proxy) -> str:
    params = conninfo_to_dict(through.url)
    return f"postgresql://{params['user']}@/{params['dbname']}?host={params['host']}"


async def _until_blocked(url: str) -> None:
    """Wait until some statement waits for a lock."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not await (await connection.execute(blocked)).fetchall():
            await asyncio.sleep(0.01)
