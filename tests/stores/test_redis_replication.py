"""Redis servers that follow one another: what a replica has, and where a key has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from redis.crc import key_slot

from remit_gates import Gate
from remit_gates.errors import StoreUnavailable
from remit_gates.stores import open_store
from remit_gates.stores.redis import AsyncRedisStore, RedisStore
from tests.redis_servers import Server, Servers, redis_8, valkey
from tests.stores.records import RUN, claimed, settled
from tests.stores.redis_proxy import redis_proxy
from tests.waiting import until


Pair = tuple[Server, Server]


@pytest.fixture(params=[redis_8, valkey], ids=["redis", "valkey"])
def pair(request: pytest.FixtureRequest, redis_servers: Servers) -> Iterator[Pair]:
    """A primary and its replica."""
    primary, replica = (redis_servers.start(request.param()) for _ in range(2))
    with replica.client() as client:
        client.replicaof("127.0.0.1", primary.port)
        until(lambda: client.info("replication")["master_link_status"] == "up", "the replica")
    yield primary, replica
    primary.kill()
    replica.kill()


def test_a_claim_waits_for_its_replica_in_the_same_round_trip(pair: Pair) -> None:
    primary, replica = pair
    with redis_proxy(primary.url()) as through:
        store = RedisStore(through.url, replicas=1)
        store.setup()
        before = through.trips
        version = store.swap(RUN, None, claimed(1), 30.0)
        assert through.trips - before == 1
        # The end of a run is not waited for.
        store.swap(RUN, version, settled(1), None, False)
        assert sum(b"WAIT" in data for data in through.sent) == 1
        store.close()
    with replica.client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
    promoted = RedisStore(replica.url())
    assert promoted.read(RUN).version is not None
    promoted.close()


def test_a_claim_that_no_replica_has_is_taken_back(pair: Pair) -> None:
    primary, replica = pair
    store = RedisStore(primary.url(), replicas=1, timeout=0.5)
    before = store.swap(RUN, None, claimed(1), 0.0)
    expired = store.read(RUN)
    other = replace(RUN, run="other")
    with replica.frozen():
        for run, expected in ((RUN, expired.version), (other, None)):
            with pytest.raises(StoreUnavailable, match="0 of the 1 replicas") as caught:
                store.swap(run, expected, claimed(2), 30.0)
            assert "taken back, so nothing was changed" in str(caught.value)
        snap = store.read(RUN)
        assert snap.record == claimed(1)
        assert snap.lease_left is not None
        assert snap.lease_left < 0
        assert store.read(other).version is None
        # Whoever read the claim while it stood does not hold a version of now.
        assert snap.version not in (before, expired.version)
        assert store.swap(RUN, snap.version, settled(2), None, False) is not None
    version = store.read(RUN).version
    assert store.swap(RUN, version, claimed(3), 30.0) is not None
    assert store.swap(other, None, claimed(1), 30.0) is not None
    store.close()


def test_no_replica_no_run(pair: Pair) -> None:
    primary, replica = pair
    store = RedisStore(primary.url(), replicas=1, timeout=0.5)
    gate = Gate(store)
    refused = pytest.raises(StoreUnavailable, match="Deliver again")
    with replica.frozen(), refused, gate.passage("run", "pause"):
        raise AssertionError("it ran")
    with gate.passage("run", "pause") as claim:
        assert claim.attempt == 1
    store.close()


def test_an_async_claim_that_no_replica_has_is_taken_back(pair: Pair) -> None:
    primary, replica = pair

    async def check() -> None:
        store = AsyncRedisStore(primary.url(), replicas=1, timeout=0.5)
        assert await store.swap(RUN, None, claimed(1), 30.0) is not None
        version = (await store.read(RUN)).version
        with replica.frozen(), pytest.raises(StoreUnavailable):
            await store.swap(RUN, version, claimed(2), 30.0)
        assert (await store.read(RUN)).record == claimed(1)
        await store.close()

    asyncio.run(check())


def test_a_server_that_wants_replicas_refuses_before_it_writes(pair: Pair) -> None:
    primary, replica = pair
    store = RedisStore(primary.url())
    store.setup()
    replica.kill()
    with primary.client() as client:
        until(lambda: not client.info("replication")["connected_slaves"], "the loss to be seen")
        client.config_set("min-replicas-to-write", 1)
    with pytest.raises(StoreUnavailable, match="did not do it"):
        store.swap(RUN, None, claimed(1), 30.0)
    assert store.read(RUN).version is None
    store.close()


def test_a_replica_is_told_to_be_one(pair: Pair) -> None:
    primary, replica = pair
    filled = RedisStore(primary.url())
    filled.setup()
    with replica.client() as client:
        until(lambda: client.exists("remit_gates:schema"), "the replica to follow")
    store = RedisStore(replica.url())
    (fault,) = store.misconfigured()
    assert "it is a replica" in fault
    with pytest.raises(StoreUnavailable, match="did not do it"):
        store.swap(RUN, None, claimed(1), 30.0)
    store.close()
    filled.close()


class Cluster:
    """Three primaries, and a replica of the first."""

    def __init__(self, servers: Servers) -> None:
        self.nodes = servers.cluster(redis_8(), replicas=1)
        self.url = f"redis+cluster://127.0.0.1:{self.nodes[1].port}"
        self.ids = [self.ask(node, "CLUSTER", "MYID").decode() for node in self.nodes]

    def ask(self, node: Server, *words: Any) -> Any:
        with node.client() as client:
            return client.execute_command(*words)

    def run_of(self, number: int) -> Any:
        """A run whose record the primary `number` has, and its slot."""
        share = -(-16384 // 3)
        for suffix in range(10_000):
            run = replace(RUN, run=f"run{suffix}")
            slot = key_slot(f"remit_gates:test::{run.run}".encode())
            if slot // share == number:
                return run, slot
        raise AssertionError("no such run")


@pytest.fixture
def cluster(redis_servers: Servers) -> Iterator[Cluster]:
    made = Cluster(redis_servers)
    yield made
    for node in made.nodes:
        node.kill()


def test_a_key_is_followed_to_where_it_moves(cluster: Cluster) -> None:
    store = open_store(cluster.url)
    run, slot = cluster.run_of(2)
    version = store.swap(run, None, claimed(1), 30.0)
    old, new = cluster.nodes[2], cluster.nodes[1]
    cluster.ask(new, "CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.ids[2])
    cluster.ask(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.ids[1])
    # What is not there yet is asked for at the new place, and what is, at the old one.
    assert store.read(run).version == version
    key = f"remit_gates:test::{run.run}"
    cluster.ask(old, "MIGRATE", "127.0.0.1", new.port, key, 0, 5000)
    assert store.read(run).version == version
    version = store.swap(run, version, claimed(2), 30.0)
    assert version is not None
    for node in (new, old, cluster.nodes[0]):
        cluster.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", cluster.ids[1])
    assert store.renew(run, 2, 30.0)
    assert store.read(run).record == claimed(2)
    assert [entry.run for entry in store.scan()] == [run]
    assert store.prune(0.0) == 0
    store.close()


def test_a_primary_that_dies_is_found_again_in_its_replica(cluster: Cluster) -> None:
    store = RedisStore(cluster.url, replicas=1, timeout=2.0)
    run, _ = cluster.run_of(0)
    version = store.swap(run, None, claimed(1), 30.0)
    cluster.nodes[0].kill()
    with pytest.raises(StoreUnavailable):
        store.read(run)
    replica = cluster.nodes[3]
    cluster.ask(replica, "CLUSTER", "FAILOVER", "TAKEOVER")

    def followed() -> bool:
        try:
            return store.read(run).version == version
        except StoreUnavailable:
            return False

    until(followed, "the store to find the new primary")
    assert store.renew(run, 1, 30.0)
    # No replica is left, so nothing new is claimed there.
    with pytest.raises(StoreUnavailable):
        store.swap(run, version, claimed(2), 30.0)
    assert store.read(run).record == claimed(1)
    store.close()


def test_each_server_of_a_cluster_is_looked_at(cluster: Cluster) -> None:
    cluster.ask(cluster.nodes[2], "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    store = RedisStore(cluster.url)
    faults = store.misconfigured()
    assert [fault.partition(": ")[0] for fault in faults if "allkeys-lfu" in fault] == [
        f"127.0.0.1:{cluster.nodes[2].port}"
    ]
    # Those of a test keep nothing on disk.
    assert sum("keeps nothing on disk" in fault for fault in faults) == 3
    store.close()
