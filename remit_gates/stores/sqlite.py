"""A store in an SQLite file: one short write transaction a change, in whatever process.

Every thread has a connection of its own, so a run that keeps the framework's connection
busy never keeps the gate waiting for more than SQLite's own write lock.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import (
    OutcomeUnknown,
    RemitError,
    SchemaMismatch,
    SetupRequired,
    StoreUnavailable,
    UsageError,
)
from remit_gates.stores import _calls
from remit_gates.stores._calls import PAGE, Call
from remit_gates.stores._checks import Check
from remit_gates.stores._protocol import Entry, Store
from remit_gates.stores._sqlite_checks import checks
from remit_gates.stores._sqlite_files import Handle, connect, visit
from remit_gates.stores.sql import META, SCHEMA, TABLE, statements


T = TypeVar("T")


class SqliteStore(Store):
    """Records in a table of an SQLite database file. The table is made when first needed.

    Args:
        path: The file; it need not exist yet, but its folder must.
        table: Name of the table.
        timeout: Seconds to wait for a lock of SQLite's.
        create: Whether to make the file and the table where they are missing, and to change
            the file's journal to WAL; if not, `SetupRequired` is raised where they are.

    Raises:
        UsageError: `path` names no file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        table: str = TABLE,
        timeout: float = 5.0,
        create: bool = True,
    ) -> None:
        name = os.fspath(path)
        if name in ("", ":memory:"):
            raise UsageError(
                "A store in an SQLite database that is not a file would be another one for"
                " each thread. Pass 'memory://', or the name of a file."
            )
        # What is relative stays where it is when the process changes its folder.
        self.path = str(Path(name).absolute())
        self._timeout = timeout
        self._create = create
        self._table = table
        names = {
            "table": _quoted(table),
            "meta": _quoted(META),
            "trigger": _quoted(f"{table}_floor"),
            "literal": "'" + table.replace("'", "''") + "'",
        }
        self._sql = {key: text.format(**names) for key, text in statements("sqlite").items()}
        self._local = threading.local()
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._ready = False

    def __repr__(self) -> str:
        return f"<SqliteStore of {self.path}>"

    def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return self._run(_calls.read(run))

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        return self._run(_calls.swap(run, expected, record, lease, durable))

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return self._run(_calls.renew(run, token, lease))

    def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return self._run(_calls.delete(run))

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
        for page in _calls.pages(framework, namespace, after, claimed, idle):
            yield from self._run(page)

    def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        gone = 0
        while (some := self._run(_calls.prune(older_than))) == PAGE:
            gone += some
        return gone + some

    def setup(self) -> None:
        """See `Store.setup`."""
        self._ready = False
        self._run(_calls.version(self._table))

    def checks(self) -> tuple[Check, ...]:
        """What can be said of the file, whether or not the table is there.

        Raises:
            StoreUnavailable, SetupRequired: As for `read`.
        """
        try:
            handle = self._handle()
            with handle.lock:
                return tuple(checks(self.path, handle.connection()))
        except sqlite3.Error as error:
            raise self._translated(error, False) from error

    def close(self) -> None:
        """See `Store.close`. A later call opens anew."""
        for handle in list(self._handles):
            handle.close()

    def renewer(self) -> Store:
        """See `Store.renewer`. Each thread has its own connection already."""
        return self

    def hurried(self) -> Store:
        """The same records, for an event loop's own thread. A call that would have to wait,
        for a lock of SQLite's, for the disk or for the file to be made, raises
        `StoreUnavailable` or `SetupRequired` there, and changes nothing."""
        from remit_gates.stores._sqlite_hurried import HurriedStore

        return HurriedStore(self.path, table=self._table, timeout=0.0, create=False)

    def _run(self, call: Call[T]) -> T:
        """Perform `call`; the one place where SQLite's errors become ours."""
        handle = self._handle()
        committing = False
        try:
            with handle.lock:
                connection = handle.connection()
                if not self._ready:
                    self._prepare(connection)
                params = {**call.params, "table": self._table}
                if not call.writes:
                    return call.parse(connection.execute(self._sql[call.name], params).fetchall())
                handle.synchronous(connection, call.durable)
                # A statement by itself is a transaction that takes the write lock before it
                # reads, waits for it, and starts anew when the file moved meanwhile. It
                # commits when all its rows are fetched: left open, it would keep the lock.
                cursor = connection.execute(self._sql[call.name], params)
                committing = True
                return call.parse(cursor.fetchall())
        except (UnicodeEncodeError, OverflowError, sqlite3.InterfaceError) as error:
            raise UsageError(f"{self.path}: SQLite cannot store this key or number.") from error
        except sqlite3.Error as error:
            raise self._translated(error, committing and not call.repeatable) from error

    def _connect(self, path: str, timeout: float) -> sqlite3.Connection:
        return (connect if self._create else visit)(path, timeout)

    def _handle(self) -> Handle:
        """The handle of this thread."""
        handle: Handle | None = getattr(self._local, "handle", None)
        if handle is None:
            handle = self._local.handle = Handle(self.path, self._timeout, self._connect)
            self._handles.add(handle)
        if self._missing():
            raise self._setup_required(f"There is no file {self.path}.")
        return handle

    def _missing(self) -> bool:
        return not self._create and not Path(self.path).exists()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the table unless it is there, and refuse one of a newer release."""
        ask = (self._sql["version"], {"table": self._table})
        try:
            found = connection.execute(*ask).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            found = []
        if not found and not self._create:
            raise self._setup_required(f"There is no table {self._table} in {self.path}.")
        if not found:
            with _writing(connection):
                for name in ("create_meta", "create_table", "create_trigger"):
                    connection.execute(self._sql[name])
                mark = {"table": self._table, "version": SCHEMA}
                connection.execute(self._sql["mark"], mark)
                found = connection.execute(*ask).fetchall()
        if found[0][0] > SCHEMA:
            raise SchemaMismatch(
                f"Table {self._table} in {self.path} has schema {found[0][0]}, and this release"
                f" knows {SCHEMA} at most. Nothing was read or changed. Upgrade remit-gates."
            )
        self._ready = True

    def _setup_required(self, found: str) -> SetupRequired:
        return SetupRequired(
            f"{found} Nothing was made or changed. Look whether this is the file of the gate;"
            " if it is to become so, run `remit-gates setup URL`."
        )

    def _translated(self, error: sqlite3.Error, unsure: bool) -> RemitError:
        # Somebody may have removed the table; the next call looks again.
        self._ready = False
        if unsure:
            return OutcomeUnknown(
                f"{self.path}: the commit failed ({error}), and may have landed all the same."
                " Reading the record again tells."
            )
        return StoreUnavailable(
            f"{self.path} did not answer: {error}. Nothing was changed. Look whether the file"
            " can be opened and what holds its lock."
        )


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A write transaction, which waits for the lock before it has read anything."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
