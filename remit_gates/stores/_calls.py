"""What an SQL store is asked to do, once for every dialect and colour: the name of a
statement, its parameters, and what its rows mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from remit_gates._codec import decode, encode
from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.stores._protocol import Entry


PAGE: Final = 500
"""Rows that a scan reads, or a prune deletes, in one statement."""

FIRST: Final = 100
"""Rows that the first statement of a scan reads: who looks often wants no more."""

T = TypeVar("T")
Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One statement to run.

    Attributes:
        name: Its name in the SQL file of the dialect.
        params: Its parameters.
        parse: What its rows mean.
        repeatable: Whether it may be sent again when its answer was lost.
        writes: Whether it changes anything.
        durable: Whether the change must survive a crash once it was acknowledged.
    """

    name: str
    params: dict[str, Any]
    parse: Callable[[list[Row]], T]
    repeatable: bool = False
    writes: bool = True
    durable: bool = True


def read(run: RunKey) -> Call[Snapshot]:
    return Call("read", _key(run), _snapshot, repeatable=True, writes=False)


def swap(
    run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
) -> Call[int | None]:
    params = _key(run)
    params["token"] = None if record.claim is None else record.claim.token
    params["lease"] = lease
    params["record"] = encode(record)
    params["durable"] = durable
    if expected is None:
        return Call("insert", params, _version, durable=durable)
    params["expected"] = expected
    return Call("swap", params, _version, durable=durable)


def renew(run: RunKey, token: int, lease: float) -> Call[bool]:
    params = {**_key(run), "token": token, "lease": lease}
    return Call("renew", params, bool, repeatable=True, durable=False)


def delete(run: RunKey) -> Call[bool]:
    return Call("delete", _key(run), bool)


def pages(
    framework: str | None,
    namespace: str | None,
    after: RunKey | None,
    claimed: bool | None,
    idle: float | None,
) -> Iterator[Call[list[Entry]]]:
    """The statements of a scan. Each is made of what the one before it found, so it has to
    be performed before the next is asked for."""
    start = RunKey(framework or "", namespace or "", "")
    inclusive = after is None or after < start
    if after is not None and not inclusive:
        start = after
    limit = FIRST
    while True:
        found: list[Entry] = []

        def parse(rows: list[Row], found: list[Entry] = found) -> list[Entry]:
            found[:] = _entries(rows)
            return found

        params = {
            "start_framework": start.framework,
            "start_namespace": start.namespace,
            "start_run": start.run,
            "inclusive": inclusive,
            "framework": framework,
            "namespace": namespace,
            "claimed": claimed,
            "idle": idle,
            "limit": limit,
        }
        yield Call("page", params, parse, repeatable=True, writes=False)
        # A page that is not full was the last: to ask again could mean to look through all
        # that does not match once more.
        if len(found) < limit:
            return
        start, inclusive, limit = found[-1].run, False, PAGE


def prune(older_than: float) -> Call[int]:
    return Call("prune", {"older_than": older_than, "limit": PAGE}, len)


def version(table: str) -> Call[int | None]:
    return Call("version", {"table": table}, _version, repeatable=True, writes=False)


def _key(run: RunKey) -> dict[str, Any]:
    return {"framework": run.framework, "namespace": run.namespace, "run": run.run}


def _snapshot(rows: list[Row]) -> Snapshot:
    return _seen(*rows[0])


def _seen(version: int | None, text: str | None, expires: float | None, now: float) -> Snapshot:
    """What a row says of its run at `now`. Of an expired claim the version is negated,
    which the statement `swap` understands."""
    if version is None or text is None:
        return Snapshot(None, Record(), None, now)
    if expires is None:
        return Snapshot(version, decode(text), None, now)
    return Snapshot(version if expires > now else -version, decode(text), expires - now, now)


def _version(rows: list[Row]) -> int | None:
    return rows[0][0] if rows else None


def _entries(rows: list[Row]) -> list[Entry]:
    return [
        Entry(RunKey(framework, namespace, run), _seen(*seen), updated)
        for framework, namespace, run, *seen, updated in rows
    ]
