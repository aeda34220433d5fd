"""What a Redis saver loses of a run in the background, a gated one finds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint
from langgraph.types import Command

from remit_gates import AlreadyConsumed
from remit_gates.langgraph import gate
from tests.adapters.graphs import Journal, approval
from tests.adapters.workers import Team, Worker


WROTE = [("channel", "value")]


def overtaken(worker: Worker, config: Any) -> tuple[list[Any], list[Any]]:
    """What a saver finds and lists of a checkpoint whose writes came before itself."""
    conf = {**config["configurable"], "checkpoint_ns": ""}
    checkpoint = empty_checkpoint()
    there = {"configurable": {**conf, "checkpoint_id": checkpoint["id"]}}
    metadata: CheckpointMetadata = {"source": "loop", "step": 1, "parents": {}}
    worker.call(worker.saver, "put_writes", there, WROTE, "task")
    worker.call(worker.saver, "put", {"configurable": conf}, checkpoint, metadata, {})
    found = worker.call(worker.saver, "get_tuple", config)
    if worker.loop is None:
        listed = list(worker.saver.list(config))
    else:

        async def collect() -> list[Any]:
            return [one async for one in worker.saver.alist(config)]

        listed = worker.loop.run(collect())
    return found.pending_writes, listed[0].pending_writes


@pytest.mark.kinds("redis", "redis-async")
def test_writes_that_come_before_their_checkpoint_are_found(team: Team) -> None:
    """LangGraph writes both in the background, in whatever order."""
    bare = overtaken(team.bare(), team.thread())
    gated = overtaken(team.worker(), team.thread())

    pending = [("task", "channel", "value")]
    assert gated == (pending, pending)
    # The twin: what would be lost is lost without the gate.
    assert bare == ([] if team.name == "redis" else pending, pending)


@pytest.mark.kinds("redis")
def test_writes_that_another_worker_lost_are_found(team: Team) -> None:
    """A gate is put in front of threads that are there already."""
    config = team.thread()
    assert overtaken(team.bare(), config)[0] == []
    gated = team.worker()
    assert gated.saver.get_tuple(config).pending_writes == [("task", "channel", "value")]


@pytest.mark.kinds("redis", "redis-async")
def test_the_store_is_the_savers_own_database(team: Team) -> None:
    worker = team.worker()
    url = team.places.redis()
    port = url.rsplit(":", 1)[1].split("/")[0]
    assert f"Redis at 127.0.0.1:{port}, database 0" in repr(worker.saver._remit.keeper.store)


def test_a_saver_of_a_client_that_decodes(redis_server: Any, tmp_path: Any) -> None:
    """The store takes nothing from the saver's client but the way."""
    from langgraph.checkpoint.redis import RedisSaver

    with redis_server.client(decode_responses=True) as client:
        saver = gate(RedisSaver(redis_client=client))
        saver.setup()
        graph = approval(Journal()).compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": tmp_path.name}}
        graph.invoke({}, config)
        assert graph.invoke(Command(resume="yes"), config)["log"] == ["ask=yes", "after="]
        with pytest.raises(AlreadyConsumed):
            graph.invoke(Command(resume="yes"), config)


def test_an_async_saver_in_one_run_of_the_loop(redis_server: Any, tmp_path: Any) -> None:
    """Whatever the gate opened in an event loop is closed with it."""
    from langgraph.checkpoint.redis.aio import AsyncRedisSaver

    async def run() -> Any:
        async with AsyncRedisSaver.from_conn_string(redis_server.url()) as saver:
            graph = approval(Journal()).compile(checkpointer=gate(saver))
            config: Any = {"configurable": {"thread_id": tmp_path.name}}
            await graph.ainvoke({}, config)
            return await graph.ainvoke(Command(resume="yes"), config)

    assert asyncio.run(run())["log"] == ["ask=yes", "after="]
