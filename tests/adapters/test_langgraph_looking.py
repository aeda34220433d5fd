"""Looking never consumes: it does not even ask the store."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from remit_gates._model import RunKey, Snapshot
from remit_gates.errors import AlreadyConsumed
from remit_gates.stores.memory import MemoryStore
from tests.adapters.graphs import Hold, Journal, asks, chain, does
from tests.adapters.racing import Background
from tests.adapters.workers import Team, on


YES: Any = Command(resume="yes")

SOME = pytest.mark.kinds("memory", "memory-async", "sqlite-async", "postgres", "foreign")


class CountingStore(MemoryStore):
    """Counts every call of the protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def read(self, run: RunKey) -> Snapshot:
        self.calls.append("read")
        return super().read(run)

    def swap(self, *args: Any, **kwargs: Any) -> int | None:
        self.calls.append("swap")
        return super().swap(*args, **kwargs)

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        self.calls.append("renew")
        return super().renew(run, token, lease)

    def delete(self, run: RunKey) -> bool:
        self.calls.append("delete")
        return super().delete(run)


@SOME
def test_looking_asks_the_store_nothing(team: Team, journal: Journal) -> None:
    store = CountingStore()
    builder = chain(ask=asks(journal, "ask", "1?", "2?"))
    graph, config = team.worker(store=store).compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)
    store.calls.clear()

    state = graph.state(config)
    graph.state(config, subgraphs=True)
    graph.state(state.config)
    graph.history(config)
    team.pending(graph, config)
    graph.update(config, {"log": ["noted"]}, as_node="ask")
    graph.state(config)

    assert store.calls == []


@SOME
def test_a_first_run_asks_the_store_nothing(team: Team, journal: Journal) -> None:
    """New input needs no claim, unless the policy's scope is every run."""
    store = CountingStore()
    graph, config = team.worker(store=store).compile(chain(one=does(journal, "one"))), team.thread()
    graph.invoke({}, config)

    assert store.calls == []


@SOME
def test_a_claimed_resume_costs_one_read_and_two_swaps(team: Team, journal: Journal) -> None:
    store = CountingStore()
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker(store=store).compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)

    assert store.calls == ["read", "swap", "swap"]
    store.calls.clear()
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config)
    assert store.calls == ["read"]


def test_looking_from_another_worker_burns_nothing(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "1?", "2?"))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)

    found: list[Any] = []
    for answer in ("a", "b"):
        assert second.waiting(config)
        assert second.history(config)
        found.append(first.invoke(Command(resume=answer), config))
    assert found[-1] == {"log": ["ask=a+b"]}


@SOME
def test_looking_is_free_while_a_run_is_in_progress(
    team: Team, journal: Journal, hold: Hold
) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after", hold))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    winner = Background(lambda: first.invoke(YES, config))
    hold.reached()

    assert second.state(config).values
    assert second.history(config)
    hold.open()
    assert winner.result() == {"log": ["ask=yes", "after="]}


@pytest.mark.kinds("memory", "sqlite", "postgres", "postgres-pool", "redis", "foreign")
def test_a_node_looks_at_its_own_run(team: Team, journal: Journal) -> None:
    worker = team.worker()
    seen: list[Any] = []

    def look(state: Any, config: RunnableConfig) -> Any:
        thread = on(config.get("configurable", {})["thread_id"])
        seen.append(worker.saver.get_tuple(thread))
        seen.append(graph.compiled.get_state(thread))
        seen.append(graph.compiled.get_state(config))
        return {"log": ["looked"]}

    graph = worker.compile(chain(ask=asks(journal, "ask", "sure?"), look=look))
    config = team.thread()
    graph.invoke({}, config)

    assert graph.invoke(YES, config) == {"log": ["ask=yes", "looked"]}
    assert len(seen) == 3
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config)


def test_an_updated_state_still_asks(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.update(config, {"log": ["noted"]}, as_node="__start__")

    assert graph.invoke(None, config)["__interrupt__"]
    assert graph.invoke(YES, config)["log"][-2:] == ["ask=yes", "after="]
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config)


@SOME
def test_an_update_as_the_asking_node_skips_its_question(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.update(config, {"log": ["instead"]}, as_node="ask")

    assert graph.invoke(None, config) == {"log": ["instead", "after="]}
    assert journal.count("ask!") == 0
