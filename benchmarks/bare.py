"""The statements that a gate cannot do without, sent bare: read the record, claim so that it
outlives a crash of the machine, and settle. What they cost around an ungated run is the least
that any gate of this protocol adds there, were its own code for nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from tests.races.savers import path_of


ROW: Final = "x" * 700
"""About as long as the record of a run with one consumption."""

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS bench (id TEXT PRIMARY KEY, version BIGINT, at REAL, row TEXT)"
)
_READ: Final = "SELECT version, at, row FROM bench WHERE id = {0}"
_CLAIM: Final = (
    "INSERT INTO bench VALUES ({0}, 1, 0, {0}) ON CONFLICT (id)"
    " DO UPDATE SET version = bench.version + 1, row = excluded.row"
)
_SETTLE: Final = "UPDATE bench SET version = version + 1, row = {0} WHERE id = {0}"


@dataclass(frozen=True, slots=True)
class Bare:
    """Statements of one record, by the name of its run.

    Attributes:
        read: Reads it.
        claim: Writes it, and returns when it is on the disk.
        begin: Writes it, and returns when others see it.
        settle: Changes it, and returns likewise.
    """

    read: Callable[[str], object]
    claim: Callable[[str], object]
    begin: Callable[[str], object]
    settle: Callable[[str], object]


@contextmanager
def bare(url: str) -> Iterator[Bare]:
    """The statements, by the driver that the gate uses as well."""
    kind = url.partition(":")[0]
    with {"redis": _redis, "postgresql": _postgres}.get(kind, _sqlite)(url) as made:
        yield made


@contextmanager
def _sqlite(url: str) -> Iterator[Bare]:
    path = path_of(url)
    with (
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as durable,
        closing(sqlite3.connect(path, isolation_level=None)) as quick,
    ):
        durable.execute("PRAGMA journal_mode = WAL")
        durable.execute("PRAGMA synchronous = FULL")
        quick.execute("PRAGMA synchronous = NORMAL")
        durable.execute(_TABLE)
        yield Bare(
            read=lambda run: quick.execute(_READ.format("?"), (run,)).fetchall(),
            claim=lambda run: durable.execute(_CLAIM.format("?"), (run, ROW)),
            begin=lambda run: quick.execute(_CLAIM.format("?"), (run, ROW)),
            settle=lambda run: quick.execute(_SETTLE.format("?"), (ROW, run)),
        )


@contextmanager
def _postgres(url: str) -> Iterator[Bare]:
    import psycopg

    with (
        psycopg.connect(url, autocommit=True, prepare_threshold=0) as durable,
        psycopg.connect(url, autocommit=True, prepare_threshold=0) as quick,
    ):
        durable.execute(_TABLE.encode())
        quick.execute("SET synchronous_commit = off")
        read, claim, settle = (text.format("%s").encode() for text in (_READ, _CLAIM, _SETTLE))
        yield Bare(
            read=lambda run: durable.execute(read, (run,)).fetchall(),
            claim=lambda run: durable.execute(claim, (run, ROW)),
            begin=lambda run: quick.execute(claim, (run, ROW)),
            settle=lambda run: quick.execute(settle, (ROW, run)),
        )


@contextmanager
def _redis(url: str) -> Iterator[Bare]:
    import redis

    with redis.Redis.from_url(url) as client:

        def put(run: str) -> None:
            client.hset(f"bench:{run}", mapping={"version": 1, "row": ROW})

        yield Bare(lambda run: client.hgetall(f"bench:{run}"), put, put, put)
