"""Fixtures for whoever needs a store; nothing starts before a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.servers import Postgres


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
