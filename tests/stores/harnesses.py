"""Harnesses of the kit over our own stores, faults included."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import OutcomeUnknown
from remit_gates.stores import AsyncStore, Entry, Store
from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore
from remit_gates.stores.sqlite import SqliteStore


class Wrapper(Store):
    """A store that does what `inner` does, for subclasses to do otherwise."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def read(self, run: RunKey) -> Snapshot:
        return self.inner.read(run)

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        return self.inner.swap(run, expected, record, lease, durable)

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        return self.inner.renew(run, token, lease)

    def delete(self, run: RunKey) -> bool:
        return self.inner.delete(run)

    def scan(self, *args: Any, **kwargs: Any) -> Iterator[Entry]:
        return self.inner.scan(*args, **kwargs)

    def prune(self, older_than: float) -> int:
        return self.inner.prune(older_than)

    def setup(self) -> None:
        self.inner.setup()

    def close(self) -> None:
        self.inner.close()

    def renewer(self) -> Store:
        return self.inner.renewer()


class Losing(Wrapper):
    """Swaps, and loses the acknowledgement."""

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        self.inner.swap(run, expected, record, lease, durable)
        raise OutcomeUnknown("the acknowledgement was lost")


class MemoryHarness:
    """A memory store has no schema, so the clause on a newer one does not run."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def __call__(self) -> Store:
        return self._store

    def losing(self) -> Store:
        return Losing(self._store)


class SqliteHarness:
    """Stores over one file of `folder`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "claims.db"
        self._newer = folder / "newer.db"

    def __call__(self) -> Store:
        return SqliteStore(self._file)

    def losing(self) -> Store:
        return Losing(SqliteStore(self._file))

    def newer(self) -> Store:
        store = SqliteStore(self._newer)
        store.setup()
        connection = sqlite3.connect(self._newer)
        connection.execute("UPDATE remit_gates_schema SET version = 99")
        connection.commit()
        connection.close()
        store.close()
        return SqliteStore(self._newer)


class ServerHarness(ABC):
    """Stores that `make` makes of a URL: of `url`, of `cut`, where the connection breaks when
    a record has been sent and answered, and of `newer`, which is an empty database."""

    def __init__(self, make: Callable[[str], Any], url: str, cut: str, newer: str) -> None:
        self._make = make
        self._url = url
        self._cut = cut
        self._newer = newer

    def __call__(self) -> Any:
        return self._make(self._url)

    def losing(self) -> Any:
        return self._make(self._cut)

    @abstractmethod
    def newer(self) -> Any: ...


class PostgresHarness(ServerHarness):
    def newer(self) -> Any:
        from remit_gates.stores.postgres import PostgresStore

        store = PostgresStore(self._newer)
        with psycopg.connect(self._newer) as connection:
            known = connection.execute("SELECT to_regclass('remit_gates')").fetchone()
            if known == (None,):
                store.setup()
                connection.execute("UPDATE remit_gates_schema SET version = 99")
        store.close()
        return self._make(self._newer)


class RedisHarness(ServerHarness):
    def newer(self) -> Any:
        import redis

        with redis.Redis.from_url(self._newer) as client:
            client.set("remit_gates:schema", 99)
        return self._make(self._newer)


class Threaded:
    """The async view of the stores of `harness`."""

    def __init__(self, harness: SqliteHarness) -> None:
        self._harness = harness

    def __call__(self) -> AsyncStore:
        return ThreadedStore(self._harness())

    def losing(self) -> AsyncStore:
        return ThreadedStore(self._harness.losing())

    def newer(self) -> AsyncStore:
        return ThreadedStore(self._harness.newer())
