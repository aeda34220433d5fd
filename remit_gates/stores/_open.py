"""From whatever a user has at hand to a store. No driver is imported before it is needed,
and no part of a URL that may hold a credential is ever repeated."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast
from urllib.parse import unquote

from remit_gates.errors import UsageError
from remit_gates.stores._protocol import AsyncStore, Store
from remit_gates.stores._threaded import ThreadedStore


S = TypeVar("S", Store, AsyncStore)

KNOWN: Final = (
    "memory://, sqlite:///relative.db, sqlite:////absolute.db, postgresql://… and redis://…"
)

_REDIS: Final = re.compile(r"(redis|valkey)s?(\+cluster)?|unix")


def open_store(url: str) -> Store:
    """The store that `url` names, for sync callers.

    Args:
        url: `memory://` (the one of this process), `sqlite:///claims.db` (relative),
            `sqlite:////srv/claims.db` (absolute), a `postgresql://` URL, or one of Redis or
            Valkey: `redis://`, `rediss://`, `valkey://`, `valkeys://`, `unix://`, and for a
            cluster `redis+cluster://` and the like.

    Raises:
        UsageError: The URL names no kind of store that this release knows.
        MissingExtra: Its driver is not installed.
    """

    def postgres(url: str) -> Store:
        return cast(Store, _postgres().PostgresStore(url))

    def redis(url: str) -> Store:
        return cast(Store, _redis().RedisStore(url))

    return _open(url, postgres, redis, lambda store: store)


def open_async_store(url: str) -> AsyncStore:
    """The store that `url` names, for async callers; see `open_store`."""

    def postgres(url: str) -> AsyncStore:
        return cast(AsyncStore, _postgres().AsyncPostgresStore(url))

    def redis(url: str) -> AsyncStore:
        return cast(AsyncStore, _redis().AsyncRedisStore(url))

    return _open(url, postgres, redis, _threaded)


def as_store(source: object) -> Store:
    """The store that `source` is or points at, for sync callers.

    Args:
        source: A URL; a store of either colour; or a connection or pool of a driver
            (`sqlite3`, `aiosqlite`, `psycopg`, `psycopg_pool`, `redis`), whose database is
            used through connections of the store's own, or through the pool of psycopg.

    Raises:
        UsageError: It is none of these.
        MissingExtra: The driver of the URL is not installed.
    """
    if isinstance(source, str):
        return open_store(source)
    if _leads_to_postgres(source):
        return cast(Store, _postgres().PostgresStore(source))
    if _leads_to_redis(source):
        return cast(Store, _redis().RedisStore(source))
    if _is(source, "sqlite3", "Connection"):
        from remit_gates.stores._sqlite_found import store_of

        return store_of(cast(Any, source))
    if _is(source, "aiosqlite", "Connection"):
        raise UsageError(
            "An aiosqlite connection tells where its database is only inside an event loop."
            " Pass the URL of the store, such as 'sqlite:///claims.db', or use the async gate."
        )
    if isinstance(source, Store):
        return source.renewer() if _awaited(source) else source
    raise _unknown(source)


def as_async_store(source: object) -> AsyncStore:
    """The store that `source` is or points at, for async callers; see `as_store`."""
    if isinstance(source, str):
        return open_async_store(source)
    if _leads_to_postgres(source):
        return cast(AsyncStore, _postgres().AsyncPostgresStore(source))
    if _leads_to_redis(source):
        return cast(AsyncStore, _redis().AsyncRedisStore(source))
    if _is(source, "aiosqlite", "Connection"):
        from remit_gates.stores._sqlite_found import FoundStore

        return FoundStore(cast(Any, source))
    if isinstance(source, AsyncStore) and _awaited(source):
        return source
    return _threaded(as_store(source))


def _open(
    url: str,
    postgres: Callable[[str], S],
    redis: Callable[[str], S],
    coloured: Callable[[Store], S],
) -> S:
    scheme, colon, rest = url.partition("://")
    if colon and scheme == "memory":
        from remit_gates.stores.memory import shared

        return coloured(shared(rest))
    if colon and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from remit_gates.stores.sqlite import SqliteStore

        return coloured(SqliteStore(unquote(rest[1:])))
    if colon and scheme in ("postgresql", "postgres"):
        return postgres(url)
    if colon and _REDIS.fullmatch(scheme):
        return redis(url)
    if colon and scheme == "sqlite":
        raise UsageError(
            "A sqlite:// URL has three slashes before a relative file and four before an"
            " absolute one: sqlite:///claims.db, sqlite:////srv/claims.db. For a store in"
            " memory, use memory://."
        )
    # The scheme is repeated only when it can be one, and not half of somebody's password.
    named = f"{scheme}:// is" if colon and scheme.isalnum() and len(scheme) < 16 else "This is"
    raise UsageError(f"{named} no store that this release knows. It knows {KNOWN}.")


def _threaded(store: Store) -> AsyncStore:
    memory = sys.modules.get("remit_gates.stores.memory")
    inline = memory is not None and isinstance(store, memory.MemoryStore)
    return ThreadedStore(store, inline=inline)


def _postgres() -> Any:
    from remit_gates.stores import postgres

    return postgres


def _redis() -> Any:
    from remit_gates.stores import redis

    return redis


def _leads_to_postgres(source: object) -> bool:
    return _is(source, "psycopg", "Connection", "AsyncConnection") or _is(
        source, "psycopg_pool", "ConnectionPool", "AsyncConnectionPool"
    )


def _leads_to_redis(source: object) -> bool:
    return any(
        _is(source, module, "Redis", "RedisCluster", "ConnectionPool")
        for module in ("redis", "redis.asyncio")
    )


def _is(source: object, module: str, *names: str) -> bool:
    """Whether `source` is of a class of `module`; if that was never imported, it is not."""
    loaded = sys.modules.get(module)
    kinds = tuple(kind for name in names if isinstance(kind := getattr(loaded, name, None), type))
    return isinstance(source, kinds)


def _awaited(store: Store | AsyncStore) -> bool:
    return inspect.iscoroutinefunction(store.read)


def _unknown(source: object) -> UsageError:
    return UsageError(
        f"A {type(source).__module__}.{type(source).__qualname__} is no store. Pass a URL"
        f" ({KNOWN}), a connection or pool of sqlite3, aiosqlite or psycopg, a client or pool"
        " of redis, or an object with the methods of remit_gates.stores.Store."
    )
