"""No SQLite connection is used by two threads at once, or is open while the process forks.

SQLite keeps the locks of a file in the process's own memory. A child inherits that memory
but not the locks, so it would believe to hold what it does not, and the parent would then
delete the log that the child writes to. Hence every connection is closed before a fork,
and opened again where it is next needed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final
from urllib.parse import quote


class Handle:
    """A thread's own connection to a database file, opened when first needed.

    Args:
        path: The file.
        timeout: Seconds to wait for a lock of SQLite's.
        connect: Makes the connection, of those below.

    Attributes:
        lock: To be held for as long as the connection is used.
    """

    def __init__(
        self, path: str, timeout: float, connect: Callable[[str, float], sqlite3.Connection]
    ) -> None:
        self._path = path
        self._timeout = timeout
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._durable: bool | None = None
        self.lock = threading.Lock()
        with _REGISTRY:
            _HANDLES.add(self)

    def __del__(self) -> None:
        # The thread that it belonged to has ended, so nobody holds the lock.
        self._shut()

    def connection(self) -> sqlite3.Connection:
        """The connection, for whoever holds `lock`."""
        if self._connection is None:
            self._connection = self._connect(self._path, self._timeout)
        return self._connection

    def synchronous(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Have the next commits wait for the disk, or not. Only outside a transaction."""
        if durable is not self._durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def close(self) -> None:
        """Close the connection once it is idle; it opens again when needed."""
        with self.lock:
            self._shut()

    def _shut(self) -> None:
        connection, self._connection, self._durable = self._connection, None, None
        if connection is not None:
            connection.close()


_HANDLES: Final[weakref.WeakSet[Handle]] = weakref.WeakSet()
_REGISTRY: Final = threading.Lock()
_held: list[Handle] = []


def _before_fork() -> None:
    """Close every connection, and let none be opened until the fork is over.

    No operation holds a handle for longer than its timeout, so the wait is bounded.
    """
    _REGISTRY.acquire()
    _held.extend(_HANDLES)
    for handle in _held:
        handle.lock.acquire()
        handle._shut()


def _after_fork() -> None:
    for handle in _held:
        handle.lock.release()
    _held.clear()
    _REGISTRY.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def visit(path: str, timeout: float) -> sqlite3.Connection:
    """A connection to a file that is there, whose journal stays as it is."""
    return sqlite3.connect(
        f"file:{quote(path)}?mode=rw",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )


def connect(path: str, timeout: float) -> sqlite3.Connection:
    """A connection in WAL mode. SQLite does not wait for a lock to change the mode, so
    that is tried again here until `timeout` is over."""
    deadline = time.monotonic() + timeout
    pause = 0.001
    while True:
        connection = sqlite3.connect(
            path,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if connection.execute("PRAGMA journal_mode").fetchall() != [("wal",)]:
                connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error) or time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            pause = min(pause * 2, 0.1)
        except BaseException:
            connection.close()
            raise
        else:
            return connection


def hurry(path: str, timeout: float) -> sqlite3.Connection:
    """A connection to a file that is there and in WAL mode, for calls that may take no longer
    than a write to a log does: it leaves it to others to bring the log into the file."""
    connection = visit(path, timeout)
    try:
        mode = connection.execute("PRAGMA journal_mode").fetchall()
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    except BaseException:
        connection.close()
        raise
    if mode != [("wal",)]:
        connection.close()
        raise sqlite3.OperationalError("its journal is no write-ahead log")
    return connection
