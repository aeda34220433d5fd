"""Where the demo's runs are stored; the gate is one call around it, and nothing else
differs between the columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard


if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver


@contextmanager
def open_saver(
    path: Path, store: str | None, *, gated: bool, setup: bool
) -> Iterator[BaseCheckpointSaver[Any]]:
    """The checkpointer of one column: Postgres when `store` is, else SQLite at `path`.

    Args:
        path: The SQLite file.
        store: URL of the gate's store; None to have it inferred from the checkpointer.
        gated: Whether it goes through `gate()`.
        setup: Whether to create the tables. One process does, before the others come.
    """
    if is_postgres(store):
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(store) as saver:
            yield _ready(saver, store, gated=gated, setup=setup)
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with closing(sqlite3.connect(path, timeout=30.0, check_same_thread=False)) as connection:
            yield _ready(SqliteSaver(connection), store, gated=gated, setup=setup)


def is_postgres(store: str | None) -> TypeGuard[str]:
    """Whether `store` is the URL of a Postgres database."""
    return store is not None and store.startswith(("postgresql://", "postgres://"))


def _ready(saver: Any, store: str | None, *, gated: bool, setup: bool) -> BaseCheckpointSaver[Any]:
    if gated:
        from remit_gates.langgraph import gate

        saver = gate(saver, store=store)
    if setup:
        saver.setup()
    result: BaseCheckpointSaver[Any] = saver
    return result
