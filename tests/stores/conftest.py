"""Fixtures of the store tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import Postgres
from tests.stores.proxy import Proxy, proxy


@pytest.fixture
def cutting(postgres_url: str) -> Iterator[Proxy]:
    """A way to the database on which the answer to an UPDATE never comes."""
    with proxy(postgres_url, cut=b"UPDATE") as through:
        yield through


@pytest.fixture
def through(postgres_url: str) -> Iterator[Proxy]:
    """A way to the database that counts."""
    with proxy(postgres_url) as between:
        yield between


@pytest.fixture
def second_url(postgres: Postgres) -> Iterator[str]:
    """Another fresh database."""
    url = postgres.create()
    yield url
    postgres.drop(url)
