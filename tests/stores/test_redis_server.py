"""Redis servers that are killed, hang, are full, or are set up so that they can lose a claim."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest

from remit_gates.errors import (
    StoreUnavailable,
)
from remit_gates.stores import open_store
from remit_gates.stores.redis import AsyncRedisStore, RedisStore
from tests.redis_servers import Server, Servers, redis_8, valkey
from tests.stores.checks import (
    tells_async_callers_that_its_server_hangs,
    tells_that_its_server_hangs,
)
from tests.stores.records import RUN, claimed
from tests.stores.redis_proxy import RedisProxy, redis_proxy


@pytest.fixture(params=[redis_8, valkey], ids=["redis", "valkey"])
def own(request: pytest.FixtureRequest, redis_servers: Servers) -> Server:
    """A server of the test's own, which syncs whatever it answers. One that syncs every
    second may lose an acknowledged claim even when nothing but itself is killed."""
    return redis_servers.start(request.param(), "--appendfsync", "always")


def test_killed_and_started_again_it_knows_what_it_acknowledged(own: Server) -> None:
    store = open_store(own.url())
    version = store.swap(RUN, None, claimed(1), 30.0)
    own.kill()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.read(RUN)
    with pytest.raises(StoreUnavailable, match="Nothing was changed"):
        store.swap(RUN, version, claimed(2), 30.0)
    own.start()
    again = open_store(own.url())
    snap = again.read(RUN)
    assert (snap.version, snap.record) == (version, claimed(1))
    assert again.swap(RUN, version, claimed(2), 30.0) is not None
    store.close()
    again.close()


def test_a_server_that_hangs_is_told(own: Server) -> None:
    tells_that_its_server_hangs(RedisStore(own.url(), timeout=0.5), own.frozen)
    store = AsyncRedisStore(own.url(), timeout=0.5)
    asyncio.run(tells_async_callers_that_its_server_hangs(store, own.frozen))


def test_a_cancelled_operation_leaves_the_store_whole(own: Server) -> None:
    async def check(through: RedisProxy) -> None:
        store = AsyncRedisStore(through.url, size=1)
        version = await store.swap(RUN, None, claimed(1), 30.0)
        with own.frozen():
            said = len(through.sent)
            waiting = [asyncio.create_task(store.read(RUN)) for _ in range(3)]
            while len(through.sent) == said:
                await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(result) for result in results} == {asyncio.CancelledError}
        # Nobody gets the answer that another did not wait for.
        for _ in range(3):
            assert (await store.read(RUN)).version == version
            assert await store.renew(RUN, 1, 30.0) is True
        await store.close()

    with redis_proxy(own.url()) as through:
        asyncio.run(check(through))


def test_a_wrong_password_is_told_without_it(redis_servers: Servers) -> None:
    server = redis_servers.start(redis_8())
    with server.client() as client:
        client.config_set("requirepass", "hunter2")
    store = RedisStore(server.url().replace("://", "://:hunter3@"))
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        store.read(RUN)
    assert "hunter" not in "".join(traceback.format_exception(caught.value))
    right = RedisStore(server.url().replace("://", "://:hunter2@"))
    right.setup()
    right.close()


def test_what_a_full_server_refuses_is_not_done(own: Server) -> None:
    store = RedisStore(own.url())
    version = store.swap(RUN, None, claimed(1), 30.0)
    with own.client() as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(StoreUnavailable, match=r"did not do it.*Nothing was changed"):
            store.swap(RUN, version, claimed(2), 30.0)
        client.config_set("maxmemory", 0)
    assert store.read(RUN).record == claimed(1)
    assert store.swap(RUN, version, claimed(2), 30.0) is not None
    store.close()


def test_what_is_wrong_with_a_server_is_told(own: Server) -> None:
    store = RedisStore(own.url())
    assert store.misconfigured() == ()
    with own.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        (fault,) = store.misconfigured()
        assert "maxmemory-policy is allkeys-lru" in fault
        assert "noeviction" in fault
        client.config_set("maxmemory-policy", "volatile-ttl")
        assert ["volatile-ttl" in fault for fault in store.misconfigured()] == [True]
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("appendonly", "no")
        (fault,) = store.misconfigured()
        assert "keeps nothing on disk" in fault
        client.config_set("save", "3600 1")
        assert store.misconfigured() == ()
    store.close()

    async def check() -> tuple[str, ...]:
        store = AsyncRedisStore(own.url())
        found = await store.misconfigured()
        await store.close()
        return found

    assert asyncio.run(check()) == ()


def test_it_is_logged_once(own: Server, caplog: pytest.LogCaptureFixture) -> None:
    with own.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    with caplog.at_level(logging.WARNING, "remit_gates"):
        for _ in range(2):
            store = RedisStore(own.url())
            store.read(RUN)
            store.renewer().read(RUN)
            store.close()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "can lose a claim that it acknowledged: maxmemory-policy is allkeys-lru" in said[0]


def test_a_server_that_may_not_be_asked_is_used_all_the_same(
    own: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with own.client() as client:
        client.config_set("appendonly", "no")
        acl = ("bob", "on", ">pw", "~remit_gates:*", "+@all", "-config", "-info")
        client.execute_command("ACL", "SETUSER", *acl)
        client.execute_command("ACL", "SETUSER", "ann", *acl[1:-1], "+info")
    with caplog.at_level(logging.WARNING, "remit_gates"):
        store = RedisStore(own.url().replace("://", "://bob:pw@"))
        assert store.swap(RUN, None, claimed(1), 30.0) is not None
        store.close()
        with pytest.raises(StoreUnavailable, match="info"):
            store.misconfigured()
        store.close()
        # How a hosted server keeps snapshots is nobody's business, and so no fault.
        hosted = RedisStore(own.url().replace("://", "://ann:pw@"))
        assert hosted.misconfigured() == ()
        hosted.close()
    assert caplog.records == []
