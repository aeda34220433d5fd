"""The settings of a Postgres server that decide whether an acknowledged claim can be lost:
what the statement `settings` tells, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from remit_gates.stores._checks import Check


def checks(row: Sequence[Any]) -> Iterator[Check]:
    """What the one row of `settings` means."""
    version, replica, read_only, fsync, pages, commit, names, streaming, allowed = row
    yield Check("server", "ok", f"Postgres {version}")
    if replica:
        yield Check(
            "primary",
            "fail",
            "this server is a read replica, which takes no claims and tells of them late",
            "point the URL at the primary; with several hosts in it, add"
            " target_session_attrs=read-write",
        )
    elif read_only == "on":
        yield Check(
            "primary",
            "fail",
            "transactions are read-only here",
            "set default_transaction_read_only to off for this role and database",
        )
    else:
        yield Check("primary", "ok", "takes writes")
    if allowed is False:
        yield Check(
            "privileges",
            "fail",
            "this role may not read and change the table",
            "GRANT SELECT, INSERT, UPDATE, DELETE on the table to the role of the workers",
        )
    for name, value in (("fsync", fsync), ("full_page_writes", pages)):
        if value == "on":
            yield Check(name, "ok", "on")
        else:
            yield Check(
                name,
                "fail",
                "off: a crash of the server can lose claims, or the whole table",
                f"ALTER SYSTEM SET {name} = on, then SELECT pg_reload_conf()",
            )
    if commit == "off":
        yield Check("synchronous_commit", "ok", "off by default; a claim is committed with on")
    else:
        yield Check("synchronous_commit", "ok", str(commit))
    if names and commit == "local":
        yield Check(
            "failover",
            "warn",
            "claims do not wait for the synchronous standby, since synchronous_commit is local",
            "set synchronous_commit to on for the role of the workers",
        )
    elif streaming and not names:
        yield Check(
            "failover",
            "warn",
            f"{streaming} standby or backup streams from here, and none is synchronous: if it is"
            " promoted, the last claims can be gone",
            "name a standby in synchronous_standby_names, or accept it (docs/operations.md)",
        )
