"""Where a Postgres store takes its connections from. None of its waits is without end, and
none of its connections is used by two operations, two event loops or two processes."""

from __future__ import annotations

import asyncio
import os
import queue
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Protocol

import psycopg
from psycopg.pq import TransactionStatus

from remit_gates.errors import StoreUnavailable
from remit_gates.stores._pg_waits import RESTING, bound, hang_up, stale
from remit_gates.stores._steps import Do, Steps


@dataclass(frozen=True, slots=True)
class Colour:
    """What differs between sync and async, apart from the awaiting.

    Attributes:
        connection: The class of connections.
        cursor: The class of their cursors.
        queue: Makes a queue of free connections.
        get: Waits for a free one, for some seconds at most.
        here: What connections must not be shared beyond: an event loop, or nothing.
    """

    connection: Any
    cursor: Any
    queue: Callable[[], Any]
    get: Callable[[Any, float], Any]
    here: Callable[[], object]


class _Anywhere:
    """Stands for all threads of the process."""


_ANYWHERE: Final = _Anywhere()

SYNC: Final = Colour(
    psycopg.Connection,
    psycopg.Cursor,
    queue.SimpleQueue,
    lambda free, seconds: free.get(timeout=seconds),
    lambda: _ANYWHERE,
)
ASYNC: Final = Colour(
    psycopg.AsyncConnection,
    psycopg.AsyncCursor,
    asyncio.Queue,
    lambda free, seconds: asyncio.wait_for(free.get(), seconds),
    asyncio.get_running_loop,
)


PREPARE_AFTER: Final = 5
"""How often a statement is sent before the server is asked to keep it, which takes a round
trip; psycopg's own default."""


class Source(Protocol):
    """Lends connections for one operation each.

    Attributes:
        prepares: What psycopg is told of statements that are worth preparing: None to go by
            the `prepare_threshold` of the connection, False not to.
    """

    prepares: bool | None

    def take(self) -> Steps[Any]: ...
    def give(self, connection: Any) -> Steps[None]: ...
    def close(self) -> Steps[None]: ...


class Own:
    """Connections that the store opens itself, a few for each event loop.

    Args:
        colour: Their colour.
        conninfo: Where to.
        options: Parameters of the connection on top of that.
        size: How many there are at most.
        limit: Seconds that any wait takes at most.
    """

    prepares: bool | None = None

    def __init__(
        self, colour: Colour, conninfo: str, options: Mapping[str, Any], size: int, limit: float
    ) -> None:
        self._colour = colour
        self._conninfo = conninfo
        self._options = options
        self._size = size
        self._limit = limit
        self._pid = os.getpid()
        self._places: weakref.WeakKeyDictionary[Any, _Slots] = weakref.WeakKeyDictionary()
        self._lent: dict[int, _Slots] = {}

    def take(self) -> Steps[Any]:
        slots = self._slots()
        try:
            connection = slots.free.get_nowait()
        except _NONE_FREE:
            connection = None
            if slots.unopened:
                slots.unopened.pop()
            else:
                connection = yield from self._waited(slots)
        if connection is not None and stale(connection):
            slots.drop(connection)
            connection = None
        if connection is None:
            try:
                connection = yield from self._opened()
            except BaseException:
                slots.free.put_nowait(None)
                raise
            slots.opened.append(connection)
        self._lent[id(connection)] = slots
        return connection

    def give(self, connection: Any) -> Steps[None]:
        slots = self._lent.pop(id(connection))
        if slots.closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
            slots.drop(connection)
            connection = None
        slots.free.put_nowait(connection)
        yield from ()

    def close(self) -> Steps[None]:
        for slots in list(self._places.values()):
            slots.close()
        self._places = weakref.WeakKeyDictionary()
        yield from ()

    def _opened(self) -> Steps[Any]:
        connection = yield Do(
            self._colour.connection.connect,
            self._conninfo,
            **self._options,
            autocommit=True,
            prepare_threshold=None,
        )
        try:
            bound(connection, self._limit)
            cursor = yield Do(connection.execute, "SELECT pg_backend_pid()")
            (pid,) = yield Do(cursor.fetchone)
        except BaseException:
            hang_up(connection)
            raise
        # A pooler gives its clients a process id of its own making. Only the server itself
        # gives the true one, and only its session is sure to be ours from end to end, so
        # that what is prepared in it is still there the next time, and is what we prepared.
        if pid == connection.info.backend_pid:
            connection.prepare_threshold = PREPARE_AFTER
        return connection

    def _waited(self, slots: _Slots) -> Steps[Any]:
        try:
            return (yield Do(self._colour.get, slots.free, self._limit))
        except (queue.Empty, asyncio.TimeoutError):
            raise StoreUnavailable(
                f"All {self._size} connections of the store were busy for {self._limit:g} s."
                " Nothing was sent. Raise `size`, or look for what keeps the server busy."
            ) from None

    def _slots(self) -> _Slots:
        if os.getpid() != self._pid:
            # The sessions belong to the parent: not used here, and not closed either.
            _INHERITED.append(self._places)
            self._places = weakref.WeakKeyDictionary()
            self._pid = os.getpid()
        here = self._colour.here()
        slots = self._places.get(here)
        if slots is None:
            # A queue that was waited on refers to its loop, so it would keep itself alive.
            for loop in [place for place in self._places if _ended(place)]:
                self._places.pop(loop).close()
            slots = self._places.setdefault(here, _Slots(self._colour.queue(), self._size))
        return slots


_INHERITED: Final[list[Any]] = []


class _Slots:
    """The connections of one place.

    Attributes:
        free: Those that nobody uses; None for one that broke, to be opened again.
        unopened: As many as may be opened still.
        opened: Those that are open, lent or not.
        closed: Whether those that are lent are to be closed when they come back.
    """

    def __init__(self, free: Any, size: int) -> None:
        self.free = free
        self.unopened = [None] * size
        self.opened: list[Any] = []
        self.closed = False
        # A `__del__` would come too late in a garbage cycle, where psycopg's own may run
        # first and warn of what is still open.
        weakref.finalize(self, _forsake, self.opened, os.getpid())

    def drop(self, connection: Any) -> None:
        """Close `connection`, which nobody uses any more."""
        hang_up(connection)
        self.opened.remove(connection)

    def close(self) -> None:
        self.closed = True
        while True:
            try:
                connection = self.free.get_nowait()
            except _NONE_FREE:
                return
            if connection is not None:
                self.drop(connection)


def _forsake(opened: list[Any], pid: int) -> None:
    """Close the connections of a place that is gone, in the process that opened them."""
    if pid == os.getpid():
        for connection in opened:
            hang_up(connection)


_NONE_FREE: Final = (queue.Empty, asyncio.QueueEmpty)


class Borrowed:
    """Connections of a pool that belongs to the user, whose settings stay as they are.

    Args:
        pool: The pool.
        limit: Seconds that any wait takes at most.
    """

    prepares: bool | None = False

    def __init__(self, pool: Any, limit: float) -> None:
        self._pool = pool
        self._limit = limit

    def take(self) -> Steps[Any]:
        deadline = monotonic() + self._limit
        while True:
            connection = yield Do(self._pool.getconn, max(deadline - monotonic(), 0.001))
            if not stale(connection):
                bound(connection, self._limit)
                return connection
            yield Do(connection.close)
            yield Do(self._pool.putconn, connection)

    def give(self, connection: Any) -> Steps[None]:
        del connection.wait
        if connection.pgconn.transaction_status not in RESTING:
            yield Do(connection.close)
        yield Do(self._pool.putconn, connection)

    def close(self) -> Steps[None]:
        yield from ()


def _ended(place: Any) -> bool:
    return isinstance(place, asyncio.AbstractEventLoop) and place.is_closed()
