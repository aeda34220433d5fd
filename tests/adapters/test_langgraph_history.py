"""Who answered what on a thread, and when, whatever became of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import AlreadyConsumed, Attempt, Policy, Release, history
from remit_gates.errors import UsageError
from remit_gates.langgraph import ahistory, atickets, tickets
from remit_gates.langgraph import history as history_of
from tests.adapters.graphs import Boom, Journal, asks, chain, does, places
from tests.adapters.workers import Graph, Team, on


SOME = pytest.mark.kinds("memory", "memory-async", "sqlite", "sqlite-async", "postgres-async-pool")


def told(graph: Graph, config: Any) -> tuple[Attempt, ...]:
    """The history of a thread, in the worker's colour."""
    loop = graph.worker.loop
    if loop is None:
        return history_of(graph.compiled, config)
    return loop.run(ahistory(graph.compiled, config))


@SOME
def test_a_thread_tells_who_answered_what(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), again=asks(journal, "again", "really?"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    assert told(graph, config) == ()
    graph.invoke(Command(resume="yes"), on(config, remit_actor="Ann", remit_delivery="m1"))
    graph.invoke(Command(resume="no"), on(config, remit_actor="Bob"))

    first, second = told(team.worker().compile(builder), config)
    assert (first.actor, first.delivery, first.state) == ("Ann", "m1", "parked")
    assert (second.actor, second.delivery, second.state) == ("Bob", None, "finished")
    assert first.answered <= (first.until or 0.0) <= second.answered <= (second.until or 0.0)
    assert None not in (first.digest, second.digest)
    assert (first.answer, second.answer) == (None, None)
    assert first.position is not None
    assert second.pause.startswith(first.position)


@SOME
def test_whoever_goes_on_is_told_beside_whoever_answered(team: Team, journal: Journal) -> None:
    builder = places(journal, "after", times=2)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="yes"), on(config, remit_actor="Ann"))
    with pytest.raises(Boom):
        graph.invoke(None, on(config, remit_actor="ops"))
    graph.invoke(None, on(config, remit_actor="ops again"))

    attempts = told(graph, config)
    assert [(entry.attempt, entry.state, entry.actor) for entry in attempts] == [
        (1, "failed", "Ann"),
        (2, "failed", "Ann"),
        (3, "finished", "Ann"),
    ]
    assert [entry.continued and entry.continued.actor for entry in attempts] == [
        None,
        "ops",
        "ops again",
    ]
    assert [entry.error for entry in attempts] == ["Boom", "Boom", None]
    assert len({entry.pause for entry in attempts}) == 1


@SOME
def test_a_release_keeps_its_reason_after_the_next_answer(team: Team, journal: Journal) -> None:
    builder = chain(ask=failing_after_asking(journal))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="ten"), on(config, remit_actor="Ann"))
    assert team.release(graph, config, actor="ops", reason="not a number")
    graph.invoke(Command(resume="10"), on(config, remit_actor="Bob"))

    first, second = told(graph, config)
    assert (first.actor, first.state, first.error) == ("Ann", "failed", "Boom")
    assert first.release == Release(first.release.at if first.release else 0, "ops", "not a number")
    assert (second.actor, second.state, second.release) == ("Bob", "finished", None)
    assert first.digest != second.digest


def failing_after_asking(journal: Journal) -> Any:
    from langgraph.types import interrupt

    def node(state: Any) -> Any:
        answer = interrupt("how much?")
        if not answer.isdigit():
            raise Boom
        return {}

    return node


@SOME
def test_answers_are_recorded_only_if_the_policy_says_so(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    answer = {"approved": True, "note": "a secret"}
    silent, config = team.worker().compile(builder), team.thread()
    silent.invoke({}, config)
    silent.invoke(Command(resume=answer), config)
    (entry,) = told(silent, config)
    assert entry.answer is None

    graph, config = (
        team.worker(policy=Policy(record_answers=True)).compile(builder),
        team.thread(),
    )
    graph.invoke({}, config)
    graph.invoke(Command(resume=answer), on(config, remit_delivery="m1"))
    (entry,) = told(graph, config)
    assert json.loads(entry.answer or "") == answer
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(Command(resume=answer), on(config, remit_delivery="m1"))
    assert "a secret" not in str(vars(refused.value)) + str(refused.value)


@pytest.mark.kinds("sqlite")
def test_answers_by_id_are_recorded_each_at_its_question(team: Team, journal: Journal) -> None:
    from langgraph.graph import START, StateGraph

    from tests.adapters.graphs import State

    builder = StateGraph(State)
    for name in ("left", "right"):
        builder.add_node(name, asks(journal, name, f"{name}?"))
        builder.add_edge(START, name)
    graph, config = (
        team.worker(policy=Policy(record_answers=True)).compile(builder),
        team.thread(),
    )
    graph.invoke({}, config)
    ids = {found.value: found.id for found in graph.waiting(config)}
    graph.invoke(Command(resume={ids["left?"]: "l", ids["right?"]: "r"}), config)
    answers = {entry.pause.split(":")[1]: entry.answer for entry in told(graph, config)}
    assert answers == {ids["left?"]: '"l"', ids["right?"]: '"r"'}


@SOME
def test_an_answer_with_a_ticket_is_recorded_like_any_other(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"))
    worker = team.worker(policy=Policy(record_answers=True))
    graph, config = worker.compile(builder), team.thread()
    graph.invoke({}, config)
    if worker.loop is None:
        (ticket,) = tickets(graph.compiled, config)
    else:
        (ticket,) = worker.loop.run(atickets(graph.compiled, config))
    graph.invoke(ticket.command("yes"), on(config, remit_ticket=str(ticket), remit_actor="Ann"))
    (entry,) = told(graph, config)
    assert (entry.actor, entry.answer, entry.state) == ("Ann", '"yes"', "finished")


@pytest.mark.kinds("sqlite")
def test_a_history_is_read_from_the_store_alone(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"))
    worker = team.worker(namespace="shop")
    graph, config = worker.compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), config)
    thread = config["configurable"]["thread_id"]
    store = worker.saver._remit.store
    assert history(store, thread, framework="langgraph", namespace="shop") == told(graph, config)
    assert history(store, thread, framework="langgraph") == ()


@pytest.mark.kinds("memory")
def test_a_graph_without_a_gate_has_no_history(team: Team, journal: Journal) -> None:
    graph = team.bare().compile(chain(ask=asks(journal, "ask", "sure?")))
    with pytest.raises(UsageError, match=r"history\(\) takes a graph"):
        history_of(graph.compiled, team.thread())
