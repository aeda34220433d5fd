"""What a connection is worth waiting for: no statement waits for the server without end."""

from __future__ import annotations

import select
import weakref
from collections.abc import Generator
from time import monotonic
from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus


T = TypeVar("T")

RESTING: Final = frozenset(
    (TransactionStatus.IDLE, TransactionStatus.INTRANS, TransactionStatus.INERROR)
)
"""A connection in one of these has answered all that it was asked."""

READ: Final = 1
WRITE: Final = 2
"""What psycopg's generators wait for, and what they are told, as bits."""


class TimedOut(psycopg.OperationalError):
    """The server did not answer in time."""


def hang_up(connection: Any) -> None:
    """Close `connection` from wherever this is. It goes straight to libpq, which needs no
    event loop (the connection's own may be gone) and cannot be cancelled half way."""
    connection.pgconn.finish()


def bound(connection: Any, limit: float) -> None:
    """Have no statement on `connection` wait longer than `limit` for the server.

    A timeout of the server's would be session state, and is of no use when the server
    hangs.
    """
    wait, fileno = type(connection).wait, connection.fileno()
    # A closure that held the connection would keep it from going when nobody wants it.
    this = weakref.ref(connection)

    def awaiting(gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        return wait(this(), _bounded(gen, limit), *args, **kwargs)

    def blocking(gen: Generator[Any, Any, Any], *_: Any, **__: Any) -> Any:
        return _polled(gen, fileno, limit)

    # Not every psycopg resumes a blocked generator in between, so that is waited for here.
    blocks = isinstance(connection, psycopg.Connection) and hasattr(select, "poll")
    connection.wait = blocking if blocks else awaiting


def _polled(gen: Generator[Any, Any, T], fileno: int, limit: float) -> T:
    """The result of `gen`, which yields what it waits for of the socket `fileno`."""
    deadline = monotonic() + limit
    poll = select.poll()
    try:
        wanted = next(gen)
        while True:
            reads, writes = wanted & READ, wanted & WRITE
            poll.register(fileno, (reads and select.POLLIN) | (writes and select.POLLOUT))
            events = poll.poll(max(0.0, deadline - monotonic()) * 1000)
            if not events:
                raise TimedOut(f"the server did not answer within {limit:g} s")
            # A socket that broke is ready for everything, and says so when it is used.
            (_, got), *_ = events
            readable, writable = got & ~select.POLLOUT, got & ~select.POLLIN
            wanted = gen.send((readable and reads) | (writable and writes))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _bounded(gen: Generator[Any, Any, T], limit: float) -> Generator[Any, Any, T]:
    """`gen`, which psycopg resumes with nothing from time to time while it waits."""
    deadline = monotonic() + limit
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and monotonic() > deadline:
                raise TimedOut(f"the server did not answer within {limit:g} s")
            wanted = gen.send(ready)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def stale(connection: Any) -> bool:
    """Whether the server has hung up on an idle connection. Asking it would cost a round
    trip; whatever it said unasked is a farewell."""
    if connection.closed:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
