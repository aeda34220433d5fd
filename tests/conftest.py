"""Fixtures for whoever needs a store; nothing starts before a test asks for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest


if TYPE_CHECKING:
    from tests.servers import Postgres


ASKS_IN_ASYNC_NODES: Final = re.compile(
    r"tests/adapters/.*(\[.*async|sync_on_async|conformance)"
    r"|tests/chaos/test_event_loops"
    r"|tests/races/test_langgraph_races.*tasks"
    r"|tests/docs/.*(langgraph_async_postgres\.py|docs/langgraph\.md)"
)
"""The tests, by node id, whose async nodes call `interrupt()`."""

NO_CONTEXT: Final = "before Python 3.11 LangGraph has no interrupt() in async nodes"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.version_info < (3, 11):
        for item in items:
            if ASKS_IN_ASYNC_NODES.search(item.nodeid):
                item.add_marker(pytest.mark.skip(reason=NO_CONTEXT))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The Postgres server of the session."""
    pytest.importorskip("psycopg")
    from tests.servers import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """A fresh, empty database; the URL also works from other processes."""
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A fresh SQLite database file; the URL also works from other processes."""
    return f"sqlite:///{tmp_path / 'claims.db'}"
