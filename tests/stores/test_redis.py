"""What only a Redis store can get wrong: its scripts, its keys, its connections."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace
from typing import Any

import pytest
import redis

from remit_gates import Gate
from remit_gates.errors import (
    OutcomeUnknown,
    SchemaMismatch,
    StoreUnavailable,
    UsageError,
)
from remit_gates.stores import AsyncStore, Entry, as_store
from remit_gates.stores.redis import AsyncRedisStore, RedisStore
from tests.redis_servers import Server
from tests.stores.checks import (
    connects_anew_in_a_fork,
    costs,
    serves_several_event_loops,
)
from tests.stores.records import RUN, claimed, settled
from tests.stores.redis_proxy import RedisProxy, redis_proxy


def test_each_operation_is_one_round_trip(redis_through: RedisProxy) -> None:
    counted = RedisStore(redis_through.url)
    counted.setup()
    # A scan and a prune ask for keys, and then for what they mean.
    assert costs(counted, lambda: redis_through.trips) == [1, 1, 1, 1, 1, 2, 2, 1]
    assert redis_through.opened == 1
    counted.close()


@pytest.mark.parametrize("known", [False, True], ids=["cold", "warm"])
def test_a_claim_is_two_round_trips_and_its_end_is_one(
    either: Server, either_url: str, redis_through: RedisProxy, known: bool
) -> None:
    """Whether or not the server and the store know the scripts."""
    with redis.Redis.from_url(either_url) as client:
        client.script_flush()
    store = RedisStore(redis_through.url)
    store.setup()
    gate = Gate(store)
    if known:
        with gate.passage("before", "pause"):
            pass
    before, spoken = redis_through.trips, len(redis_through.sent)
    with gate.passage("run", "pause"):
        claiming = redis_through.trips - before
        said = [b"EVALSHA" in data for data in redis_through.sent[spoken:]]
    settling = redis_through.trips - before - claiming
    assert (claiming, settling) == (2, 1)
    assert said == [known, known]
    store.close()


def test_a_server_that_forgot_its_scripts(either_url: str, redis_through: RedisProxy) -> None:
    store = RedisStore(redis_through.url, replicas=0)
    version = store.swap(RUN, None, claimed(1), 30.0)
    store.read(RUN)
    with redis.Redis.from_url(either_url) as client:
        client.script_flush()
    before = redis_through.trips
    assert store.read(RUN).version == version
    assert store.swap(RUN, version, claimed(2), 30.0) is not None
    # Each is told once, and sent in full.
    assert redis_through.trips - before == 4
    assert store.renew(RUN, 2, 30.0)
    assert [entry.run for entry in store.scan()] == [RUN]
    store.close()


def test_nothing_is_sent_twice(either_url: str) -> None:
    """A driver that retries would turn a claim that landed into a refusal."""
    with redis_proxy(either_url, cut=b'"format"') as through:
        store = RedisStore(through.url)
        with pytest.raises(OutcomeUnknown, match="may or may not have landed"):
            store.swap(RUN, None, claimed(1), 30.0)
        assert sum(b'"format"' in data for data in through.sent) == 1
        assert store.read(RUN).record == claimed(1)
        store.close()


def test_a_client_that_retries_is_only_asked_for_the_way(either_url: str) -> None:
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    with redis_proxy(either_url, cut=b'"format"') as through:
        retry = Retry(NoBackoff(), 5)
        with redis.Redis.from_url(through.url, retry=retry, decode_responses=True) as client:
            store = as_store(client)
            with pytest.raises(OutcomeUnknown):
                store.swap(RUN, None, claimed(1), 30.0)
            assert sum(b'"format"' in data for data in through.sent) == 1
            assert store.read(RUN).record == claimed(1)
            store.close()


def test_a_claim_whose_acknowledgement_was_lost_is_found(either_url: str) -> None:
    with redis_proxy(either_url, cut=b'"claim"', once=True) as through:
        gate = Gate(through.url)
        with gate.passage("run", "pause") as claim:
            assert through.cut is None
            assert sum(b'"claim"' in data for data in through.sent) == 1
            (entry,) = gate.store.scan()
            assert entry.snapshot.record.token == claim.token
        gate.store.close()


def test_a_lost_answer_to_a_read_is_asked_for_again(either_url: str) -> None:
    with redis_proxy(either_url, once=True) as through:
        store = RedisStore(through.url)
        store.swap(RUN, None, claimed(1), 30.0)
        store.read(RUN)
        for operation in (lambda: store.read(RUN).record, lambda: store.renew(RUN, 1, 30.0)):
            through.cut = b"EVAL"
            assert operation() in (claimed(1), True)
            assert through.cut is None
        store.close()


def test_no_record_ever_expires(either_url: str) -> None:
    store = RedisStore(either_url)
    store.swap(RUN, None, claimed(1), 0.0)
    version = store.swap(replace(RUN, run="other"), None, settled(1), None)
    store.swap(replace(RUN, run="other"), version, settled(2), None, False)
    store.renew(RUN, 1, 30.0)
    with redis.Redis.from_url(either_url) as client:
        keys: Any = client.keys("*")
        assert sorted(keys) == [
            b"remit_gates:schema",
            b"remit_gates:test::other",
            b"remit_gates:test::run",
        ]
        assert {client.ttl(key) for key in keys} == {-1}
        assert client.type("remit_gates:test::run") == b"hash"
    store.close()


def entries(store: RedisStore | AsyncStore, **which: Any) -> list[Entry]:
    """What a store of either colour scans."""
    if isinstance(store, RedisStore):
        return list(store.scan(**which))

    async def collect() -> list[Entry]:
        found = [entry async for entry in store.scan(**which)]
        await store.close()
        return found

    return asyncio.run(collect())


@pytest.mark.parametrize("make", [RedisStore, AsyncRedisStore])
@pytest.mark.parametrize("sweep", [3, 50_000], ids=["many sweeps", "one sweep"])
def test_a_scan_goes_on_where_it_is_told_to(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, make: Any, sweep: int
) -> None:
    monkeypatch.setattr("remit_gates.stores._redis_scan.SWEEP", sweep)
    filling = RedisStore(redis_url)
    runs = [replace(RUN, namespace=f"n{i % 2}", run=f"r{i:02}") for i in range(20)]
    for run in runs:
        lease = 30.0 if run.run < "r05" else None
        filling.swap(run, None, settled(1) if lease is None else claimed(1), lease)
    store = make(redis_url)

    found = [entry.run for entry in entries(store)]
    assert found == sorted(runs)
    for position in (0, 7, 19):
        rest = entries(store, after=found[position])
        assert [entry.run for entry in rest] == found[position + 1 :]
    assert [entry.run.run for entry in entries(store, claimed=True)] == [
        *("r00", "r02", "r04"),
        *("r01", "r03"),
    ]
    assert len(entries(store, claimed=False)) == 15
    assert len(entries(store, namespace="n1", after=found[12])) == 7
    assert entries(store, idle=3600.0) == []
    assert len(entries(store, idle=-1.0)) == 20
    filling.close()


def test_a_prefix_is_a_store_of_its_own(redis_url: str) -> None:
    one, two = RedisStore(redis_url, prefix="a"), RedisStore(redis_url, prefix="a:b")
    one.swap(RUN, None, claimed(1), 30.0)
    assert two.read(RUN).version is None
    two.swap(RUN, None, settled(1), None)
    assert [entry.snapshot.record for entry in one.scan()] == [claimed(1)]
    assert [entry.snapshot.record for entry in two.scan()] == [settled(1)]
    with pytest.raises(UsageError):
        RedisStore(redis_url, prefix="")
    one.close()
    two.close()


def test_what_is_no_record_is_left_alone(redis_url: str) -> None:
    store = RedisStore(redis_url)
    with redis.Redis.from_url(redis_url) as client:
        client.set("remit_gates:test::run", "something else")
        for operation in (lambda: store.read(RUN), lambda: store.swap(RUN, None, claimed(1), 1.0)):
            with pytest.raises(SchemaMismatch, match="another prefix"):
                operation()
        assert client.get("remit_gates:test::run") == b"something else"
        # Whatever looks like the key of a record, but is none.
        client.set(b"remit_gates:a:b:\xff", 1)
        client.set("remit_gates:a:b:c:d", 1)
        client.delete("remit_gates:test::run")
        assert list(store.scan()) == []
        assert store.prune(0.0) == 0
        client.set("remit_gates:schema", "new")
    with pytest.raises(SchemaMismatch, match="schema new"):
        RedisStore(redis_url).read(RUN)
    store.close()


def test_a_key_that_redis_cannot_store(redis_url: str) -> None:
    store = RedisStore(redis_url)
    with pytest.raises(UsageError, match="no valid text"):
        store.swap(replace(RUN, run="\ud800"), None, claimed(1), 30.0)
    nothing = replace(RUN, run="a\x00b")
    assert store.swap(nothing, None, claimed(1), 30.0) is not None
    assert [entry.run for entry in store.scan()] == [nothing]
    store.close()


def test_one_async_store_in_several_event_loops(redis_url: str) -> None:
    store = RedisStore(redis_url)
    store.swap(RUN, None, claimed(1), 30.0)
    # Nobody closes it: an event loop that ends closes what was opened in it.
    serves_several_event_loops(AsyncRedisStore(redis_url))
    store.close()


def test_a_fork_has_connections_of_its_own(redis_url: str) -> None:
    connects_anew_in_a_fork(redis_url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://bob:hunter2@127.0.0.1:1/0",
        "rediss://bob:hunter2@127.0.0.1:1/0",
        "redis+cluster://bob:hunter2@127.0.0.1:1",
        "unix://bob:hunter2@/nowhere",
        "redis://bob:hunter2@127.0.0.1:one",
    ],
)
def test_no_message_holds_a_credential(url: str) -> None:
    with pytest.raises((UsageError, StoreUnavailable)) as caught:
        RedisStore(url).read(RUN)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
