"""How commands get to a Redis server: sent once, over connections of the store's own.

Every error says whether the commands had been sent, since only that decides whether a
write may have landed. None of the waits is without end, and no connection is used by two
operations, two event loops or two processes.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import redis
import redis.asyncio.connection
import redis.asyncio.retry
import redis.connection
import redis.retry
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, ResponseError

from remit_gates.stores._redis_address import Address, Node
from remit_gates.stores._steps import Do, Steps


Command = Sequence[Any]
"""The words of one command."""


class Unsent(Exception):
    """Nothing was sent, or the server certainly did nothing; the cause says why."""


class Lost(Exception):
    """The commands were sent, and the answers did not come; the cause says why."""

    @property
    def hung(self) -> bool:
        """Whether the server was waited for until the time was over."""
        return isinstance(self.__cause__, (redis.TimeoutError, TimeoutError, asyncio.TimeoutError))


@dataclass(eq=False)
class Place:
    """Where connections may be used: one event loop, or every thread of the process.

    Attributes:
        pools: The connections to each server; to the one of the URL under None.
        guard: Closes them when the event loop ends.
    """

    pools: dict[Node | None, Any] = field(default_factory=dict)
    guard: AsyncGenerator[None, None] | None = None


@dataclass(frozen=True, slots=True)
class Colour:
    """What differs between sync and async, apart from the awaiting.

    Attributes:
        module: Where redis-py has connections and pools of this colour.
        retry: What a connection retries with, which here is never.
        here: What connections must not be shared beyond.
        open: Does what a new place needs.
        close: Closes the connections of a place.
        drop: Closes one connection, at once.
    """

    module: Any
    retry: Any
    here: Callable[[], object]
    open: Callable[[Place], Any]
    close: Callable[[Place], Any]
    drop: Callable[[Any], Any]


class _Anywhere:
    """Stands for all threads of the process."""


_ANYWHERE: Final = _Anywhere()


def _close(place: Place) -> None:
    for pool in place.pools.values():
        pool.disconnect()
    place.pools.clear()


async def _guard(place: Place) -> AsyncGenerator[None, None]:
    """Lives as long as its event loop, which closes what is left of its generators when it
    ends, and with this one its connections."""
    try:
        yield
    finally:
        for pool in place.pools.values():
            await pool.disconnect()
        place.pools.clear()


async def _aopen(place: Place) -> None:
    place.guard = _guard(place)
    await place.guard.__anext__()


async def _aclose(place: Place) -> None:
    if place.guard is not None:
        await place.guard.aclose()


SYNC: Final = Colour(
    redis.connection,
    redis.retry.Retry,
    lambda: _ANYWHERE,
    lambda place: None,
    _close,
    lambda connection: connection.disconnect(),
)
ASYNC: Final = Colour(
    redis.asyncio.connection,
    redis.asyncio.retry.Retry,
    asyncio.get_running_loop,
    _aopen,
    _aclose,
    lambda connection: connection.disconnect(nowait=True),
)

_NAMED: Final = tuple(int(part) for part in redis.__version__.split(".")[:2]) < (5, 3)
"""Whether a pool wants to be told for which command a connection is."""


class Links:
    """Connections to the servers of an address.

    Args:
        colour: Their colour.
        address: Where to.
        size: How many connections there are at most to a server, in one place.
        limit: Seconds that any wait takes at most.
    """

    def __init__(self, colour: Colour, address: Address, size: int, limit: float) -> None:
        self._colour = colour
        self._options: dict[str, Any] = {
            # Session state of the user's client is not wanted, and a hello costs a trip.
            **address.options,
            "connection_class": _connection(address.connection, colour.module),
            "max_connections": size,
            "timeout": limit,
            "socket_timeout": limit,
            "socket_connect_timeout": limit,
            "protocol": 2,
        }
        self._places: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()

    def exchange(self, node: Node | None, commands: Sequence[Command]) -> Steps[list[Any]]:
        """The replies to `commands`, sent together to `node`; a command that the server
        refused has an error for its reply.

        Raises:
            Unsent: They did not get there.
            Lost: They may have got there.
        """
        pool = yield from self._pool(node)
        try:
            connection = yield Do(pool.get_connection, *(("EVALSHA",) if _NAMED else ()))
        except (redis.RedisError, OSError, asyncio.TimeoutError) as error:
            raise Unsent from error
        try:
            replies = yield from self._replies(connection, commands)
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                yield Do(self._colour.drop, connection)
                yield Do(pool.release, connection)
            # A server that loads its data yet answers with what redis-py has as a broken
            # connection.
            if isinstance(error, BusyLoadingError):
                raise Unsent from error
            if isinstance(error, Exception):
                raise Lost from error
            raise
        yield Do(pool.release, connection)
        return replies

    def close(self) -> Steps[None]:
        """Close the connections of this place, and forget those of loops that have ended."""
        place = self._places.pop(self._colour.here(), None)
        if place is not None:
            yield Do(self._colour.close, place)
        self._forget()

    @staticmethod
    def _replies(connection: Any, commands: Sequence[Command]) -> Steps[list[Any]]:
        yield Do(connection.send_packed_command, connection.pack_commands(commands))
        replies: list[Any] = []
        for _ in commands:
            try:
                replies.append((yield Do(connection.read_response)))
            except ResponseError as refusal:
                replies.append(refusal)
        return replies

    def _pool(self, node: Node | None) -> Steps[Any]:
        here = self._colour.here()
        place = self._places.get(here)
        if place is None:
            self._forget()
            place = self._places.setdefault(here, Place())
            yield Do(self._colour.open, place)
        pool = place.pools.get(node)
        if pool is None:
            at = {} if node is None else {"host": node[0], "port": node[1]}
            # A retry object keeps count, so each pool has its own.
            retry = self._colour.retry(NoBackoff(), 0)
            made = self._colour.module.BlockingConnectionPool(retry=retry, **at, **self._options)
            pool = place.pools.setdefault(node, made)
        return pool

    def _forget(self) -> None:
        # A connection refers to its loop, so a loop that has ended would live on here.
        for loop in [place for place in self._places if _ended(place)]:
            del self._places[loop]


def _ended(place: Any) -> bool:
    return isinstance(place, asyncio.AbstractEventLoop) and place.is_closed()


def _connection(kind: Any, module: Any) -> Any:
    """The class of connections that does in `module` what `kind` does."""
    if issubclass(kind, module.AbstractConnection):
        return kind
    # Of the other colour: redis-py's own classes have the same names in both.
    ours = next(base for base in kind.__mro__ if base.__module__.startswith("redis."))
    return getattr(module, ours.__name__)
