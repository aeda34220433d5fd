"""Where a Postgres database is, learnt from a URL, a connection or a pool, and how to speak
of it without its credentials."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from remit_gates.errors import UsageError


_NOT_OURS: Final = frozenset(
    ("autocommit", "cursor_factory", "prepare_threshold", "row_factory", "context")
)
"""Settings of a pool's connections that say how to use them, and not where they lead."""


@dataclass(frozen=True, slots=True)
class Address:
    """The way to a database.

    Attributes:
        conninfo: What psycopg connects with; holds credentials.
        options: Further parameters of the connection; likewise.
        label: What messages call it.
        secrets: What no message may hold.
    """

    conninfo: str = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    label: str
    secrets: tuple[str, ...] = field(repr=False)

    def clean(self, error: BaseException) -> BaseException | None:
        """`error` as a cause to be shown, unless it would tell a secret."""
        return None if any(secret in str(error) for secret in self.secrets) else error

    def said(self, error: BaseException) -> str:
        """The words of `error` in one line, without any secret."""
        text = " ".join(str(error).split()) or type(error).__name__
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def address(source: Any, limit: float) -> Address:
    """Where `source` leads: a conninfo string, a psycopg connection or a psycopg pool.

    Raises:
        UsageError: Nowhere, or it does not tell.
    """
    if isinstance(source, Address):
        return source
    if isinstance(source, str):
        return _address(source, {}, limit)
    if isinstance(source, (psycopg.Connection, psycopg.AsyncConnection)):
        if source.closed:
            raise UsageError("A closed connection does not tell where its database is.")
        password = source.info.password
        extra = {"password": password} if password else {}
        return _address(make_conninfo(source.info.dsn, **extra), {}, limit)
    if hasattr(source, "getconn") and hasattr(source, "conninfo"):
        conninfo, kwargs = _told(source.conninfo), _told(source.kwargs) or {}
        options = {key: value for key, value in kwargs.items() if key not in _NOT_OURS}
        return _address(conninfo, options, limit)
    raise UsageError(
        f"A {type(source).__name__} does not lead to a Postgres database. Pass a URL, or a"
        " connection or pool of psycopg 3."
    )


def _told(value: Any) -> Any:
    """A setting of a pool, which may be a function that computes it."""
    if inspect.iscoroutinefunction(value):
        raise UsageError(
            "This pool computes its connection parameters in a coroutine, which a store cannot"
            " run when it is made. Pass the URL of the store."
        )
    return value() if callable(value) else value


def _address(conninfo: str, options: dict[str, Any], limit: float) -> Address:
    try:
        params = {**conninfo_to_dict(conninfo), **options}
    except psycopg.ProgrammingError:
        # The driver's message repeats what it could not parse.
        raise UsageError(
            "This is no connection string that psycopg understands. It is not repeated here,"
            " since it may hold a password. A URL is postgresql://user:password@host:5432/name;"
            " special characters in its parts are percent-encoded."
        ) from None
    if "connect_timeout" not in params:
        options["connect_timeout"] = max(2, math.ceil(limit))
    if "application_name" not in params:
        options["application_name"] = "remit-gates"
    host = params.get("host") or params.get("hostaddr") or "the default host"
    name = params.get("dbname") or "by default"
    secrets = (params.get("password"), params.get("sslpassword"))
    return Address(
        conninfo,
        options,
        f"database {name} at {host}",
        tuple(str(secret) for secret in secrets if secret),
    )
