"""Where a Redis database is, learnt from a URL, a client or a pool, and how to speak of it
without its credentials.

Only the way is taken from a client or pool. Retries, timeouts and decoding are the store's
own: a driver that sends a swap again would make a claim that landed look like a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.cluster
import redis.connection

from remit_gates.errors import UsageError


Node: TypeAlias = tuple[str, int]
"""Host and port of a server."""

SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""What a URL may begin with, alone or before `+cluster`, and what redis-py calls it."""

_WAY: Final = re.compile(
    "host|port|path|db|username|password|credential_provider|client_name|ssl_.*|server"
    "|socket_keepalive|socket_keepalive_options|socket_type"
)
"""The settings of a connection that lead to a database. `server` is fakeredis's."""


@dataclass(frozen=True, slots=True)
class Address:
    """The way to a database.

    Attributes:
        connection: The class of connections, of either colour.
        options: What a connection is made with, but for host and port in a cluster; holds
            credentials.
        seeds: The servers of a cluster that were named; none outside of one.
        label: What messages call it.
        secrets: What no message may hold.
    """

    connection: Any
    options: Mapping[str, Any] = field(repr=False)
    seeds: tuple[Node, ...]
    label: str
    secrets: tuple[str, ...] = field(repr=False)

    def clean(self, error: BaseException) -> BaseException | None:
        """`error` as a cause to be shown, unless it would tell a secret."""
        return None if any(secret in str(error) for secret in self.secrets) else error

    def said(self, error: BaseException) -> str:
        """The words of `error` in one line, without any secret or full stop."""
        text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def address(source: Any) -> Address:
    """Where `source` leads: a URL, or a client or pool of redis-py.

    Raises:
        UsageError: Nowhere, or it does not tell.
    """
    if isinstance(source, Address):
        return source
    if isinstance(source, str):
        return _of_url(source)
    if isinstance(source, (redis.cluster.RedisCluster, redis.asyncio.cluster.RedisCluster)):
        return _of_cluster(source)
    pool = getattr(source, "connection_pool", source)
    if hasattr(pool, "sentinel_manager"):
        raise UsageError(
            "A client or pool of Sentinel looks its server up by itself, which a store cannot"
            " share. Pass the URL of the primary. Nothing was read or changed."
        )
    if not hasattr(pool, "connection_kwargs") or not hasattr(pool, "connection_class"):
        raise UsageError(
            f"A {type(source).__name__} does not lead to a Redis database. Pass a URL, or a"
            " client or pool of redis-py."
        )
    return _address(pool.connection_class, pool.connection_kwargs)


def _of_url(url: str) -> Address:
    try:
        found = _parsed(url)
        if found is not None:
            return _address(*found)
    except (ValueError, TypeError):
        # The driver's message repeats what it could not parse.
        pass
    raise UsageError(
        "This is no URL that redis-py understands. It is not repeated here, since it may hold a"
        " password. A URL is redis://user:password@host:6379/0, with the number of the database"
        " at its end, rediss:// for TLS, redis+cluster:// for a cluster, or"
        " unix:///path/to/socket?db=0; special characters in its parts are percent-encoded."
    )


def _parsed(url: str) -> tuple[Any, dict[str, Any], tuple[Node, ...]] | None:
    """What `_address` takes, out of a URL; None when that leads nowhere, or might lead to
    another database than the one that is meant."""
    scheme, _, rest = url.partition("://")
    base, _, suffix = scheme.partition("+")
    path = unquote(urlsplit(url).path).strip("/")
    if suffix not in ("", "cluster") or (suffix and base not in SCHEMES):
        return None
    if not path if base == "unix" else path and not path.isdecimal():
        return None
    known: dict[str, Any] = redis.connection.parse_url(f"{SCHEMES.get(base, base)}://{rest}")
    kind = known.pop("connection_class", redis.connection.Connection)
    if not all(_WAY.fullmatch(name) or name in _SETTINGS for name in known):
        return None
    seed = (known.get("host", "localhost"), known.get("port", 6379))
    return kind, known, (seed,) if suffix else ()


_SETTINGS: Final = frozenset(
    (
        *("socket_timeout", "socket_connect_timeout", "health_check_interval", "protocol"),
        *("retry_on_timeout", "retry_on_error", "max_connections", "timeout", "decode_responses"),
    )
)
"""Parameters of a URL that say how to use a connection, and not where it leads."""


def _of_cluster(client: Any) -> Address:
    nodes = client.nodes_manager
    kwargs = getattr(nodes, "connection_kwargs", None) or client.connection_kwargs
    # The servers that were found outlive the one that was named.
    found = {**nodes.startup_nodes, **nodes.nodes_cache}
    seeds = tuple((node.host, int(node.port)) for node in found.values())
    kind = kwargs.get("connection_class") or redis.connection.Connection
    if kwargs.get("ssl"):
        kind = redis.connection.SSLConnection
    return _address(kind, kwargs, seeds)


def _address(kind: Any, kwargs: Mapping[str, Any], seeds: tuple[Node, ...] = ()) -> Address:
    options = {
        name: value for name, value in kwargs.items() if _WAY.fullmatch(name) and value is not None
    }
    if seeds:
        for name in ("host", "port", "db"):
            options.pop(name, None)
        host, port = seeds[0]
        label = f"the Redis cluster at {host}:{port}"
    elif "path" in options:
        label = f"Redis at {options['path']}, database {options.get('db', 0)}"
    else:
        host, port = options.get("host", "localhost"), options.get("port", 6379)
        label = f"Redis at {host}:{port}, database {options.get('db', 0)}"
    secrets = tuple(
        str(options[name]) for name in ("password", "ssl_password") if options.get(name)
    )
    made = Address(kind, options, seeds, label, secrets)
    # An option that no connection takes is told here, and not when something is at stake.
    kind(**options)
    return made
