"""An SQLite store for an event loop's own thread: no call waits for a lock of SQLite's, for the
disk, or for a file to be made.

Reading takes no lock, and a change that need not reach the disk is written to the log alone, as a
line of a log file is. One such change in some hundred finds that the log was started anew, and
SQLite then waits for the log's head to reach the disk.
"""

from __future__ import annotations

import sqlite3

from remit_gates._model import Record, RunKey
from remit_gates.errors import StoreUnavailable
from remit_gates.stores._sqlite_files import hurry
from remit_gates.stores.sqlite import SqliteStore


class HurriedStore(SqliteStore):
    """See `SqliteStore.hurried`."""

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        if durable:
            raise StoreUnavailable(f"{self.path}: a durable swap waits for the disk.")
        return super().swap(run, expected, record, lease, durable)

    def _connect(self, path: str, timeout: float) -> sqlite3.Connection:
        return hurry(path, timeout)

    def _missing(self) -> bool:
        # To connect tells, and that once.
        return False
