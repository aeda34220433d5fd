"""Every store of ours keeps every clause, in both colours and in every way to make it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg_pool
import pytest
from psycopg.rows import dict_row

from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.postgres import AsyncPostgresStore, PostgresStore
from remit_gates.testing import check_async_store, check_store
from tests.stores.harnesses import MemoryHarness, PostgresHarness, SqliteHarness, Threaded
from tests.stores.proxy import Proxy


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
