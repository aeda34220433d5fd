"""Every store of ours keeps every clause, in both colours and in every way to make it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg_pool
import pytest
import redis.asyncio
from psycopg.rows import dict_row

from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.postgres import AsyncPostgresStore, PostgresStore
from remit_gates.stores.redis import AsyncRedisStore, RedisStore
from remit_gates.testing import check_async_store, check_store
from tests.redis_servers import Server
from tests.stores.harnesses import (
    MemoryHarness,
    PostgresHarness,
    RedisHarness,
    SqliteHarness,
    Threaded,
)
from tests.stores.proxy import Proxy
from tests.stores.redis_proxy import RedisProxy


def test_memory() -> None:
    report = check_store(MemoryHarness())
    report.raise_for_failures()
    assert report.not_run == ("a_newer_schema_is_refused",)


def test_memory_inline() -> None:
    store = ThreadedStore(MemoryStore(), inline=True)
    asyncio.run(check_async_store(lambda: store)).raise_for_failures()


def test_sqlite(tmp_path: Path) -> None:
    check_store(SqliteHarness(tmp_path)).raise_for_failures(complete=True)


def test_sqlite_in_threads(tmp_path: Path) -> None:
    harness = Threaded(SqliteHarness(tmp_path))
    asyncio.run(check_async_store(harness)).raise_for_failures(complete=True)


def test_postgres(postgres_url: str, cutting: Proxy, second_url: str) -> None:
    harness = PostgresHarness(PostgresStore, postgres_url, cutting.url, second_url)
    check_store(harness).raise_for_failures(complete=True)


def test_postgres_async(postgres_url: str, cutting: Proxy, second_url: str) -> None:
    harness = PostgresHarness(AsyncPostgresStore, postgres_url, cutting.url, second_url)
    asyncio.run(check_async_store(harness)).raise_for_failures(complete=True)


@pytest.mark.parametrize("autocommit", [True, False])
def test_postgres_pool(postgres_url: str, autocommit: bool) -> None:
    kwargs: dict[str, Any] = {"autocommit": autocommit, "row_factory": dict_row}
    with psycopg_pool.ConnectionPool(
        postgres_url, min_size=1, max_size=2, kwargs=kwargs, open=True
    ) as pool:
        report = check_store(lambda: PostgresStore(pool))
        report.raise_for_failures()
        assert set(report.not_run) == {
            "a_lost_acknowledgement_is_unknown",
            "a_newer_schema_is_refused",
        }


@pytest.mark.parametrize("autocommit", [True, False])
def test_postgres_async_pool(postgres_url: str, autocommit: bool) -> None:
    async def check() -> None:
        async with psycopg_pool.AsyncConnectionPool(
            postgres_url, min_size=1, max_size=1, kwargs={"autocommit": autocommit}, open=False
        ) as pool:
            report = await check_async_store(lambda: AsyncPostgresStore(pool))
            report.raise_for_failures()

    asyncio.run(check())


def test_other_table_and_schema(postgres_url: str) -> None:
    def make() -> PostgresStore:
        return PostgresStore(postgres_url, table='odd "name"', schema="Not There")

    check_store(make).raise_for_failures()


def test_redis(either: Server, either_url: str, redis_cutting: RedisProxy) -> None:
    harness = RedisHarness(RedisStore, either_url, redis_cutting.url, either.create())
    check_store(harness).raise_for_failures(complete=True)


def test_redis_async(either: Server, either_url: str, redis_cutting: RedisProxy) -> None:
    harness = RedisHarness(AsyncRedisStore, either_url, redis_cutting.url, either.create())
    asyncio.run(check_async_store(harness)).raise_for_failures(complete=True)


@pytest.mark.parametrize("decode_responses", [True, False])
def test_redis_client_and_pool(either_url: str, decode_responses: bool) -> None:
    with redis.Redis.from_url(either_url, decode_responses=decode_responses) as client:
        for source in (client, client.connection_pool):
            check_store(lambda source=source: RedisStore(source)).raise_for_failures()


def test_redis_async_client_and_pool(either_url: str) -> None:
    async def check() -> None:
        async with redis.asyncio.Redis.from_url(either_url) as client:
            for source in (client, client.connection_pool):
                report = await check_async_store(lambda source=source: AsyncRedisStore(source))
                report.raise_for_failures()

    asyncio.run(check())


def test_redis_other_prefix(either_url: str) -> None:
    check_store(lambda: RedisStore(either_url, prefix="odd:[a]*")).raise_for_failures()


def test_redis_cluster(redis_cluster: str) -> None:
    check_store(lambda: RedisStore(redis_cluster)).raise_for_failures()


def test_redis_cluster_async(redis_cluster: str) -> None:
    asyncio.run(check_async_store(lambda: AsyncRedisStore(redis_cluster))).raise_for_failures()


def test_redis_cluster_client(redis_cluster: str) -> None:
    url = redis_cluster.replace("+cluster", "")
    with redis.RedisCluster.from_url(url) as client:
        check_store(lambda: RedisStore(client)).raise_for_failures()

    async def check() -> None:
        async with redis.asyncio.RedisCluster.from_url(url) as client:
            report = await check_async_store(lambda: AsyncRedisStore(client))
            report.raise_for_failures()

    asyncio.run(check())
