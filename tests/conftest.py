"""Fixtures for whoever needs a store; nothing starts before a test asks for it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from remit_gates import _observe


if TYPE_CHECKING:
    from tests.redis_servers import Given, Server, Servers
    from tests.servers import Postgres
    from tests.unit.staged import Stage


ASKS_IN_ASYNC_NODES: Final = re.compile(
    r"tests/adapters/.*(\[.*async|sync_on_async|conformance|an_async_saver)"
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


@pytest.fixture(autouse=True)
def nobody_left_listening() -> Iterator[None]:
    """What a test has listen to a gate, it also silences: others count what is told."""
    before = dict(_observe._listeners)
    yield
    assert _observe._listeners == before


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


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[Servers]:
    """Starts Redis and Valkey servers, which end with the session."""
    pytest.importorskip("redis")
    from tests.redis_servers import Servers

    servers = Servers()
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def valkey_server(redis_servers: Servers) -> Server | Given:
    """The Valkey server of the session."""
    from tests.redis_servers import Given, valkey

    given = os.environ.get("REMIT_TEST_VALKEY")
    return Given(given) if given else redis_servers.start(valkey())


@pytest.fixture(scope="session")
def redis_server(redis_servers: Servers) -> Server | Given:
    """The Redis server of the session, which has RediSearch and RedisJSON."""
    from tests.redis_servers import Given, modules, redis_8

    given = os.environ.get("REMIT_TEST_REDIS")
    return Given(given) if given else redis_servers.start(redis_8(), *modules())


@pytest.fixture(scope="session")
def redis_cluster(redis_servers: Servers) -> str:
    """URL of a cluster of three."""
    from tests.redis_servers import redis_8

    nodes = redis_servers.cluster(redis_8())
    return f"redis+cluster://127.0.0.1:{nodes[0].port}"


@pytest.fixture
def valkey_url(valkey_server: Server) -> str:
    """A fresh, empty Valkey database; the URL also works from other processes."""
    return valkey_server.create()


@pytest.fixture
def redis_url(redis_server: Server) -> str:
    """A fresh, empty Redis database; the URL also works from other processes."""
    return redis_server.create()


@pytest.fixture
def redis_stack_url(redis_server: Server) -> str:
    """The one database of the Redis server that RediSearch knows, emptied."""
    with redis_server.client() as client:
        client.flushdb()
    return redis_server.url()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A fresh SQLite database file; the URL also works from other processes."""
    return f"sqlite:///{tmp_path / 'claims.db'}"


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of each kind that LangGraph has a checkpointer for, without tables."""
    # LangGraph's Redis saver works in database 0 only.
    kind = "redis_stack" if request.param == "redis" else request.param
    url: str = request.getfixturevalue(f"{kind}_url")
    return url


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """One process, on a clock of the test's own."""
    from tests.unit.staged import staged

    with staged(monkeypatch) as stage:
        yield stage
