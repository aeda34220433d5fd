"""What the commands share: a store that is opened for looking, a question before a change,
and one way to print."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, cast

from remit_gates import open_store
from remit_gates.errors import RemitError, UsageError
from remit_gates.stores import Store


PATIENCE: Final = 10.0
"""Seconds to wait for a host."""

LONG: Final = 600.0
"""Seconds to wait for a statement that has much to look through."""


@contextmanager
def looking(url: str, *, long: bool = False) -> Iterator[Store]:
    """The store that `url` names, which is not made if it is not there: a mistyped file is
    told and not created. One that may take `long` waits for statements that have to look
    through a whole table, though no longer than others for a host that does not answer."""
    store = open_store(url)
    if url.startswith("sqlite:"):
        from remit_gates.stores.sqlite import SqliteStore

        store = SqliteStore(cast(SqliteStore, store).path, create=False)
    elif long and url.startswith(("postgresql:", "postgres:")):
        from remit_gates.stores._pg_address import address
        from remit_gates.stores.postgres import PostgresStore

        store = PostgresStore(address(url, PATIENCE), timeout=LONG)
    with closing(store):
        yield store


def confirm(what: str, question: str, undone: str, *, yes: bool) -> None:
    """Go on only if `yes`, or if whoever sits at the terminal says so.

    Args:
        what: What there is to be changed.
        question: Whether to change it.
        undone: What did not happen if not.
        yes: Do not ask.

    Raises:
        UsageError: There is nobody to ask.
        RemitError: The answer was no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{what} There is no terminal to ask at. {undone} Add --yes to do it without being"
            " asked, or --dry-run to see what would be done."
        )
    # Asked beside the output, which may be on its way to a program.
    print(f"{what} {question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RemitError(f"Not confirmed. {undone}")


def actor() -> str:
    """Who runs this command, as `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may know its user by number only
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return f"{user}@{socket.gethostname()}"


def document(body: dict[str, Any]) -> None:
    """Print `body` for a program: one JSON object, and nothing else."""
    print(json.dumps(body, indent=2))


def note(text: str) -> None:
    """Tell a reader something that is not part of the output."""
    print(text, file=sys.stderr)
