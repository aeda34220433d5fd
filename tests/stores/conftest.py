"""Fixtures of the store tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.redis_servers import Server
from tests.servers import Postgres
from tests.stores.proxy import Proxy, proxy
from tests.stores.redis_proxy import RedisProxy, redis_proxy


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


@pytest.fixture(params=["redis", "valkey"])
def either(request: pytest.FixtureRequest) -> Any:
    """A Redis server and a Valkey server."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def either_url(either: Server) -> str:
    """A fresh database of Redis and of Valkey."""
    return either.create()


@pytest.fixture
def redis_cutting(either_url: str) -> Iterator[RedisProxy]:
    """A way to that database on which the answer to a swap never comes."""
    with redis_proxy(either_url, cut=b'"format"') as through:
        yield through


@pytest.fixture
def redis_through(either_url: str) -> Iterator[RedisProxy]:
    """A way to that database that counts."""
    with redis_proxy(either_url) as between:
        yield between


@pytest.fixture
def second_url(postgres: Postgres) -> Iterator[str]:
    """Another fresh database."""
    url = postgres.create()
    yield url
    postgres.drop(url)
