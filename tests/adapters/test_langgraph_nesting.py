"""A nested graph rides on its root's claim; a child with a thread of its own has its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import current_claim
from remit_gates.errors import AlreadyConsumed, InProgress
from tests.adapters.graphs import Hold, Journal, asks, chain, does
from tests.adapters.racing import Background, outcome
from tests.adapters.workers import Team, on


YES: Any = Command(resume="yes")

SYNC = pytest.mark.kinds("memory", "sqlite", "postgres", "postgres-pool", "redis", "foreign")


def test_a_nested_graph_is_covered_by_the_roots_claim(
    team: Team, journal: Journal, hold: Hold
) -> None:
    inner = chain(ask=asks(journal, "ask", "sure?"), deep=does(journal, "deep", hold))
    builder = chain(outer=inner.compile(), after=does(journal, "after"))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    winner = Background(lambda: first.invoke(YES, config))
    hold.reached()

    for given in (YES, None):
        assert isinstance(outcome(partial(second.invoke, given, config)), InProgress)
    hold.open()
    assert winner.result() == {"log": ["ask=yes", "deep=", "after="]}
    assert [journal.count(f"{name}!") for name in ("ask", "deep", "after")] == [1, 1, 1]


@SYNC
def test_a_nested_graph_with_its_own_gated_saver(team: Team, journal: Journal) -> None:
    """Whatever saver it was compiled with, its root's claim is what counts."""
    worker, other = team.worker(), team.worker()
    inner = chain(ask=asks(journal, "ask", "1?", "2?")).compile(checkpointer=other.saver)
    builder = chain(outer=inner, after=does(journal, "after"))
    graph, config = worker.compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="a"), config)

    assert graph.invoke(Command(resume="b"), config) == {"log": ["ask=a+b", "after="]}
    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume="b"), config)


@SYNC
def test_a_child_with_its_own_thread_is_a_run_of_its_own(
    team: Team, journal: Journal, hold: Hold
) -> None:
    worker = team.worker()
    own = team.thread()
    child = worker.compile(chain(ask=asks(journal, "child", "child?", then=hold)))
    tokens: list[Any] = []

    def call(state: Any) -> Any:
        claim = current_claim()
        tokens.append(claim and claim.run.run)
        found = child.invoke(YES if journal.count("child") else {}, own)
        return {"log": [str("__interrupt__" in found)]}

    graph = worker.compile(chain(call=call, ask=asks(journal, "ask", "sure?"), again=call))
    config = team.thread()
    graph.invoke({}, config)
    winner = Background(lambda: graph.invoke(YES, config))
    hold.reached()

    assert isinstance(outcome(lambda: child.invoke(YES, own)), InProgress)
    assert isinstance(outcome(lambda: graph.invoke(YES, config)), InProgress)
    hold.open()
    assert winner.result()["log"] == ["True", "ask=yes", "False"]
    assert tokens == [None, config["configurable"]["thread_id"]]
    with pytest.raises(AlreadyConsumed):
        child.invoke(YES, own)
    assert journal.count("child!") == 1


@SYNC
def test_a_child_that_is_refused_fails_its_parents_node(team: Team, journal: Journal) -> None:
    worker = team.worker()
    own = team.thread()
    child = worker.compile(chain(ask=asks(journal, "child", "child?")))
    child.invoke({}, own)
    child.invoke(YES, own)

    def call(state: Any) -> Any:
        child.invoke(YES, own)

    graph, config = (
        worker.compile(chain(ask=asks(journal, "ask", "sure?"), call=call)),
        team.thread(),
    )
    graph.invoke({}, config)
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config)

    assert refused.value.run.run == own["configurable"]["thread_id"]
    assert journal.count("child!") == 1


@SYNC
def test_options_are_not_handed_down(team: Team, journal: Journal) -> None:
    """A child run in a node does not take its parent's delivery id for its own."""
    worker = team.worker()
    child = worker.compile(chain(ask=asks(journal, "child", "child?")))
    threads = [team.thread(), team.thread()]
    seen: list[Any] = []

    def call(state: Any) -> Any:
        for own in threads:
            child.invoke({}, own)
            child.invoke(YES, own)
        claim = current_claim()
        assert claim is not None
        seen.append((claim.delivery, claim.actor))
        return {"log": ["called"]}

    graph = worker.compile(chain(ask=asks(journal, "ask", "sure?"), call=call))
    config = team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, on(config, remit_delivery="m", remit_actor="ann"))

    assert seen == [("m", "ann")]
    store = worker.saver._remit.store
    for own in threads:
        record = store.read(worker.saver._remit.key(own["configurable"]["thread_id"])).record
        assert [entry.delivery for entry in record.consumptions] == [None]


def test_a_graph_called_in_a_node_without_a_config(team: Team, journal: Journal) -> None:
    """It is nested: it runs on its parent's thread and claim."""
    inner = chain(ask=asks(journal, "ask", "1?", "2?")).compile()

    def call(state: Any) -> Any:
        journal("call")
        return {"log": inner.invoke({})["log"]}

    async def acall(state: Any) -> Any:
        journal("call")
        return {"log": (await inner.ainvoke({}))["log"]}

    worker = team.worker()
    builder = chain(outer=call if worker.loop is None else acall)
    first, second = worker.compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    second.invoke(Command(resume="a"), config)
    assert first.invoke(Command(resume="b"), config) == {"log": ["ask=a+b"]}
    with pytest.raises(AlreadyConsumed):
        second.invoke(Command(resume="b"), config)
    assert journal.count("ask!") == 1
