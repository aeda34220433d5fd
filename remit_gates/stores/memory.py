"""A store that lives and dies with its process: for tests, notebooks and single workers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, time
from typing import Final

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import StoreMisconfigured
from remit_gates.stores._checks import Check
from remit_gates.stores._protocol import Entry, Store


_STARTED: Final = time() - monotonic()


def steady() -> float:
    """Seconds since the epoch that never step, whatever is done to the machine's clock."""
    return _STARTED + monotonic()


@dataclass(frozen=True, slots=True)
class _Row:
    version: int
    record: Record
    expires: float | None
    updated: float


class MemoryStore(Store):
    """Records in a dictionary, behind a lock.

    Args:
        clock: Seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = steady) -> None:
        self._clock = clock
        self._rows: dict[RunKey, _Row] = {}
        self._lock = threading.Lock()
        self._floor = 0
        self._pid: int | None = None

    def __repr__(self) -> str:
        return f"<MemoryStore of {len(self._rows)} records>"

    def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        with self._mine():
            return _snapshot(self._rows.get(run), self._clock())

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`. Nothing here survives the process, durable or not."""
        with self._mine():
            row = self._rows.get(run)
            if (None if row is None else row.version) != expected:
                return None
            now = self._clock()
            version = max(int(now * 1_000_000), self._floor + 1) if row is None else row.version + 1
            expires = None if lease is None else now + lease
            self._rows[run] = _Row(version, record, expires, now)
            return version

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        with self._mine():
            row = self._rows.get(run)
            now = self._clock()
            if (
                row is None
                or row.record.claim is None
                or row.record.claim.token != token
                or row.expires is None
                or row.expires <= now
            ):
                return False
            self._rows[run] = _Row(row.version, row.record, now + lease, row.updated)
            return True

    def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        with self._mine():
            return self._forget(run)

    def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> Iterator[Entry]:
        """See `Store.scan`."""
        with self._mine():
            runs = sorted(self._rows)
        for run in runs:
            if after is not None and run <= after:
                continue
            if framework in (None, run.framework) and namespace in (None, run.namespace):
                with self._mine():
                    row, now = self._rows.get(run), self._clock()
                if (
                    row is not None
                    and claimed in (None, row.record.claim is not None)
                    and (idle is None or row.updated < now - idle)
                ):
                    yield Entry(run, _snapshot(row, now), row.updated)

    def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        with self._mine():
            limit = self._clock() - older_than
            old = [
                run
                for run, row in self._rows.items()
                if row.record.claim is None and row.updated < limit
            ]
            return sum(map(self._forget, old))

    def setup(self) -> None:
        """See `Store.setup`. There is nothing to do."""

    def checks(self) -> tuple[Check, ...]:
        """What can be said of the store."""
        says = "memory: the records live and die with one process"
        mend = "give processes a store that they share, such as sqlite:///claims.db"
        return (Check("durability", "warn", says, mend),)

    def close(self) -> None:
        """See `Store.close`. The records stay as long as the store does."""

    def renewer(self) -> Store:
        """See `Store.renewer`."""
        return self

    def _forget(self, run: RunKey) -> bool:
        row = self._rows.pop(run, None)
        # A run that comes back starts above all that were deleted, however coarse the clock.
        self._floor = max(self._floor, row.version if row else 0)
        return row is not None

    def _mine(self) -> threading.Lock:
        """The lock, in the process that holds the records.

        A fork has a copy of them, and whoever decides by a copy serves what was served
        already. One that was never used is nobody's copy.
        """
        pid = os.getpid()
        if self._pid != pid:
            if self._pid is not None:
                raise StoreMisconfigured(
                    "A memory store was used before this process was forked, so what it knows"
                    " here is a copy. Nothing was read or changed. Give processes a store"
                    " that they share, for instance 'sqlite:///claims.db'."
                )
            self._pid = pid
        return self._lock


def shared(name: str) -> MemoryStore:
    """The store called `name` of this process: whoever opens `memory://name` shares it."""
    return _SHARED.setdefault(name, MemoryStore())


_SHARED: Final[dict[str, MemoryStore]] = {}


def _snapshot(row: _Row | None, now: float) -> Snapshot:
    if row is None:
        return Snapshot(None, Record(), None, now)
    left = None if row.expires is None else row.expires - now
    return Snapshot(row.version, row.record, left, now)
