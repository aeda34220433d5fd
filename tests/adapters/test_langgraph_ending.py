"""However a served run ends, its end is written down and the thread is not lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from remit_gates import Policy
from remit_gates._claim import ActiveClaim
from remit_gates._heartbeat import HEARTBEAT
from remit_gates._model import RunKey
from remit_gates._observe import Event, observed
from remit_gates.errors import AlreadyConsumed, ClaimLost, InProgress
from remit_gates.stores.memory import MemoryStore
from tests.adapters.graphs import Hold, Journal, asks, chain, does
from tests.adapters.racing import Background, outcome
from tests.adapters.workers import Graph, Team
from tests.waiting import until


YES: Any = Command(resume="yes")

SYNC = ("memory", "sqlite", "postgres", "postgres-pool", "redis", "foreign")
ASYNC = (
    *("memory-async", "sqlite-async", "postgres-async", "postgres-async-pool"),
    *("redis-async", "foreign-async"),
)


def approval(journal: Journal) -> Any:
    return chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))


def claim(graph: Graph, config: Any) -> Any:
    """The active claim on a thread, as the store has it."""
    store = graph.worker.saver._remit.store
    return store.read(RunKey("langgraph", "", config["configurable"]["thread_id"])).record.claim


def test_a_recursion_limit_is_a_failure(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), b=does(journal, "b"), c=does(journal, "c"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)

    with pytest.raises(GraphRecursionError):
        graph.invoke(YES, {**config, "recursion_limit": 1})
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config)
    assert refused.value.failed
    assert refused.value.outcome is not None
    assert refused.value.outcome.detail == "GraphRecursionError"
    assert graph.invoke(None, config) == {"log": ["ask=yes", "b=", "c="]}
    assert [journal.count(f"{name}!") for name in ("ask", "b", "c")] == [1, 1, 1]


@pytest.mark.kinds(*SYNC)
def test_a_stream_that_is_closed_early(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    stream = graph.compiled.stream(YES, config, stream_mode="updates")
    assert next(stream) == {"ask": {"log": ["ask=yes"]}}
    stream.close()

    assert claim(graph, config) is None
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config)
    assert refused.value.failed
    assert graph.invoke(None, config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == journal.count("after!") == 1


@pytest.mark.kinds(*ASYNC)
def test_an_async_stream_that_is_closed_early(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)

    async def look() -> Any:
        stream = graph.compiled.astream(YES, config, stream_mode="updates")
        first = await anext(stream)
        await stream.aclose()
        return first

    assert graph.worker.loop is not None
    assert graph.worker.loop.run(look()) == {"ask": {"log": ["ask=yes"]}}
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config)
    assert refused.value.failed
    assert graph.invoke(None, config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == journal.count("after!") == 1


@pytest.mark.kinds(*SYNC)
def test_an_abandoned_stream_holds_its_run(team: Team, journal: Journal) -> None:
    """Until it is closed: its next step is still to come."""
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    stream = graph.compiled.stream(YES, config, stream_mode="updates")
    next(stream)

    assert isinstance(outcome(lambda: graph.invoke(None, config)), InProgress)
    assert [*stream] == [{"after": {"log": ["after="]}}]
    assert claim(graph, config) is None


@pytest.mark.kinds(*ASYNC)
def test_a_cancelled_run_is_a_failure(team: Team, journal: Journal) -> None:
    reached = asyncio.Event()

    async def slow(state: Any) -> Any:
        journal("slow")
        reached.set()
        await asyncio.Event().wait()

    async def quick(state: Any) -> Any:
        journal("quick")
        return {"log": ["quick"]}

    worker = team.worker()
    builder = chain(ask=asks(journal, "ask", "sure?"), slow=slow)
    graph = worker.compile(builder)
    config = team.thread()
    graph.invoke({}, config)

    async def cancel() -> None:
        run = asyncio.ensure_future(graph.compiled.ainvoke(YES, config))
        await reached.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    events: list[Event] = []
    assert worker.loop is not None
    with observed(events.append):
        worker.loop.run(cancel())
        worker.loop.run(settled(worker))

    assert [event.kind for event in events] == ["granted", "failed"]
    assert events[-1].detail == "CancelledError"
    refused = outcome(lambda: graph.invoke(YES, config))
    assert isinstance(refused, AlreadyConsumed)
    assert refused.failed
    mended = worker.compile(chain(ask=asks(journal, "ask", "sure?"), slow=quick))
    assert mended.invoke(None, config) == {"log": ["ask=yes", "quick"]}
    assert journal.count("ask!") == 1


async def settled(worker: Any) -> None:
    """Wait for whatever the gate goes on with after a cancellation."""
    from remit_gates.langgraph import _loop

    while _loop._ending:
        await asyncio.wait([*_loop._ending])


@pytest.mark.kinds("memory", "sqlite")
def test_an_interrupt_from_the_keyboard_is_a_failure(team: Team, journal: Journal) -> None:
    raised: list[bool] = []

    def node(state: Any) -> Any:
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt
        return {"log": ["done"]}

    graph = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"), node=node))
    config = team.thread()
    graph.invoke({}, config)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke(YES, config)

    assert claim(graph, config) is None
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config)
    assert refused.value.failed
    assert graph.invoke(None, config) == {"log": ["ask=yes", "done"]}


def test_a_long_run_keeps_its_lease(team: Team, journal: Journal, hold: Hold) -> None:
    """The heartbeat renews it from the saver's own database."""
    builder = chain(ask=asks(journal, "ask", "sure?", then=hold))
    first = team.worker(policy=Policy(lease=0.3)).compile(builder)
    second = team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    events: list[Event] = []
    with observed(events.append):
        winner = Background(lambda: first.invoke(YES, config))
        hold.reached()
        entered = claim_of(first, config)
        entered.beat()
        deadline = entered.passage.deadline
        # The first lease is long over by then.
        until(lambda: entered.passage.deadline >= deadline + 0.3)
        refused = outcome(lambda: second.invoke(YES, config))
        hold.open()
        assert winner.result() == {"log": ["ask=yes"]}

    assert isinstance(refused, InProgress)
    assert "renewal_failed" not in {event.kind for event in events}


def claim_of(graph: Graph, config: Any) -> Any:
    """The claim that this process holds on a thread."""
    thread = config["configurable"]["thread_id"]
    with HEARTBEAT._wake:
        jobs = [*HEARTBEAT._due]
    claims = [getattr(job, "__self__", None) for job in jobs]
    (found,) = [c for c in claims if isinstance(c, ActiveClaim) and c.run.run == thread]
    return found


@pytest.mark.kinds(
    "memory", "memory-async", "sqlite", "sqlite-async", "postgres-async-pool", "redis"
)
def test_a_stale_winner_cannot_write(team: Team, journal: Journal, hold: Hold) -> None:
    """It stood still past its lease, and another has gone on with its run."""
    seconds = [1e9]
    store = MemoryStore(clock=lambda: seconds[0])
    slow = chain(ask=asks(journal, "ask", "sure?", then=hold), after=does(journal, "after"))
    first = team.worker(store=store).compile(slow)
    second = team.worker(store=store).compile(approval(journal))
    config = team.thread()
    first.invoke({}, config)
    winner = Background(lambda: first.invoke(YES, config))
    hold.reached()
    # LangGraph records the answer in the background, and the run must go on with it.
    until(lambda: "__resume__" in [write[1] for write in team.pending(second, config)[2]])
    stale = claim_of(first, config)
    HEARTBEAT.remove(stale.beat)
    stale.passage.deadline = 0.0
    seconds[0] += 100

    assert second.invoke(None, config) == {"log": ["ask=yes", "after="]}
    before = team.pending(second, config)
    hold.open()
    assert isinstance(winner.result(), ClaimLost)
    assert team.pending(second, config) == before
    assert journal.count("after!") == 1
    with pytest.raises(AlreadyConsumed) as refused:
        second.invoke(YES, config)
    assert not refused.value.failed
