"""What a user has at hand becomes a store, or is refused in words that help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
import redis.sentinel

from remit_gates.errors import UsageError
from remit_gates.stores import (
    AsyncStore,
    Store,
    as_async_store,
    as_store,
    open_async_store,
    open_store,
)
from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.postgres import AsyncPostgresStore, PostgresStore
from remit_gates.stores.sql import statements
from remit_gates.stores.sqlite import SqliteStore
from tests.stores import scripts


def test_memory_is_shared_by_its_name() -> None:
    assert open_store("memory://") is open_store("memory://")
    assert open_store("memory://a") is not open_store("memory://b")
    assert open_async_store("memory://a").renewer() is open_store("memory://a")


def test_sqlite_has_three_slashes_or_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url, path in (
        ("sqlite:///claims.db", tmp_path / "claims.db"),
        ("sqlite:///a%20b.db", tmp_path / "a b.db"),
        ("sqlite:////srv/claims.db", Path("/srv/claims.db")),
    ):
        store = open_store(url)
        assert isinstance(store, SqliteStore)
        assert Path(store.path) == path
    assert isinstance(open_async_store("sqlite:///claims.db"), ThreadedStore)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgres(scheme: str) -> None:
    url = f"{scheme}://bob:hunter2@nowhere/claims"
    assert isinstance(open_store(url), PostgresStore)
    assert isinstance(open_async_store(url), AsyncPostgresStore)
    assert repr(open_store(url)) == "<PostgresStore of database claims at nowhere>"


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("redis://bob:hunter2@nowhere", "Redis at nowhere:6379, database 0"),
        ("rediss://bob:hunter2@nowhere:1/2", "Redis at nowhere:1, database 2"),
        ("valkey://bob:hunter2@nowhere", "Redis at nowhere:6379, database 0"),
        ("valkeys://nowhere?db=3", "Redis at nowhere:6379, database 3"),
        ("unix://bob:hunter2@/run/redis.sock?db=1", "Redis at /run/redis.sock, database 1"),
        ("redis+cluster://bob:hunter2@nowhere", "the Redis cluster at nowhere:6379"),
        ("valkeys+cluster://nowhere:1", "the Redis cluster at nowhere:1"),
    ],
)
def test_redis(url: str, where: str) -> None:
    assert repr(open_store(url)) == f"<RedisStore of {where}>"
    assert repr(open_async_store(url)) == f"<AsyncRedisStore of {where}>"
    assert repr(as_store(open_async_store(url))) == f"<RedisStore of {where}>"


@pytest.mark.parametrize(
    "url",
    [
        "redis://bob:hunter2@nowhere:one/0",
        "redis://bob:hunter2@nowhere/claims",
        "redis://bob:hunter2@nowhere/0?lease=1",
        "redis+sentinel://bob:hunter2@nowhere/0",
        "redis://bob:hunter2@[::/0",
        "redis://nowhere:hunter2",
        "unix://bob:hunter2@",
    ],
)
def test_a_url_that_redis_does_not_understand(url: str) -> None:
    for opened in (open_store, open_async_store, as_store, as_async_store):
        with pytest.raises(UsageError, match="redis://") as caught:
            opened(url)
        assert "hunter2" not in str(caught.value)


def test_clients_and_pools_of_redis() -> None:
    url = "redis://bob:hunter2@nowhere:1/2"
    where = "Redis at nowhere:1, database 2"
    for client in (redis.Redis.from_url(url), redis.asyncio.Redis.from_url(url)):
        for source in (client, client.connection_pool):
            assert repr(as_store(source)) == f"<RedisStore of {where}>"
            assert repr(as_async_store(source)) == f"<AsyncRedisStore of {where}>"


def test_a_client_of_sentinel_is_told_what_to_pass() -> None:
    client = redis.sentinel.Sentinel([("nowhere", 1)]).master_for("orders")
    with pytest.raises(UsageError, match="Pass the URL of the primary"):
        as_store(client)


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://bob:hunter2@nowhere",
        "mysql://bob:hunter2@nowhere/claims",
        "hunter2",
        "hunter2://x",
        "claims.db",
        "sqlite://hunter2",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "",
    ],
)
def test_an_unknown_url_is_refused(url: str) -> None:
    for opened in (open_store, open_async_store, as_store, as_async_store):
        with pytest.raises(UsageError, match="memory://") as caught:
            opened(url)
        assert "hunter2@" not in str(caught.value)


def test_an_unknown_scheme_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"mysql:// .* sqlite:///.* postgresql://.* redis://"):
        open_store("mysql://nowhere")


def test_a_store_is_a_store_in_either_colour(tmp_path: Path) -> None:
    memory, sqlite = MemoryStore(), SqliteStore(tmp_path / "claims.db")
    for store in (memory, sqlite):
        assert as_store(store) is store
        view = as_async_store(store)
        assert as_async_store(view) is view
        assert as_store(view) is store
    postgres = AsyncPostgresStore("postgresql://nowhere/claims")
    assert as_async_store(postgres) is postgres
    assert isinstance(as_store(postgres), PostgresStore)


def test_what_is_no_store_is_refused() -> None:
    things: list[Any] = [None, 1, object(), {}]
    for thing in things:
        with pytest.raises(UsageError, match="is no store"):
            as_store(thing)
        with pytest.raises(UsageError, match="is no store"):
            as_async_store(thing)


def test_stores_fit_their_protocol(tmp_path: Path) -> None:
    url = "postgresql://nowhere/claims"
    sync: list[Store] = [MemoryStore(), SqliteStore(tmp_path / "x.db"), PostgresStore(url)]
    awaited: list[AsyncStore] = [as_async_store(sync[0]), AsyncPostgresStore(url)]
    assert all(isinstance(store, Store) for store in sync)
    assert all(isinstance(store, AsyncStore) for store in awaited)


def test_no_driver_is_imported_before_it_is_needed() -> None:
    out = scripts.run(
        """
        import sys
        import remit_gates, remit_gates.stores, remit_gates.stores.memory, remit_gates.testing
        from remit_gates.stores import as_store
        try:
            as_store(object())
        except ValueError:
            pass
        print([name for name in ("sqlite3", "aiosqlite", "psycopg", "psycopg_pool", "redis")
               if name in sys.modules])
        """
    )
    assert out == "[]"


def test_a_missing_driver_is_named() -> None:
    out = scripts.run(
        """
        import sys
        sys.modules["psycopg"] = None
        from remit_gates.errors import MissingExtra
        from remit_gates.stores import open_store
        try:
            open_store("postgresql://bob:hunter2@nowhere/claims")
        except MissingExtra as error:
            print(error)
        """
    )
    assert "pip install 'remit-gates[postgres]'" in out
    assert "hunter2" not in out


def test_the_statements_are_read_once() -> None:
    assert statements("sqlite") is statements("sqlite")
    with pytest.raises(TypeError):
        statements("sqlite")["read"] = ""  # type: ignore[index]


def test_the_dialects_have_the_same_statements() -> None:
    ours = statements("sqlite").keys() - {"create_trigger"}
    assert ours == statements("postgres").keys() - {"create_schema", "settings"}
