"""Nothing legitimate is refused: every question of a run can be answered, once."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed, InProgress, ResumeRefused
from tests.adapters.graphs import Hold, Journal, State, asks, beside, chain, does
from tests.adapters.racing import Background, outcome
from tests.adapters.workers import Team


def test_two_questions_of_one_node_are_answered_by_two_workers(
    team: Team, journal: Journal
) -> None:
    builder = chain(ask=asks(journal, "ask", "first?", "second?"))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)

    parked = first.invoke(Command(resume="a"), config)
    assert [found.value for found in parked["__interrupt__"]] == ["second?"]
    assert second.invoke(Command(resume="b"), config) == {"log": ["ask=a+b"]}
    assert journal.count("ask!") == 1


def test_three_questions_of_one_node_are_answered_by_id(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "1?", "2?", "3?"))
    workers = [team.worker().compile(builder) for _ in range(3)]
    config = team.thread()
    workers[0].invoke({}, config)

    found: list[Any] = []
    for graph, answer in zip(workers, "abc", strict=True):
        (question,) = graph.waiting(config)
        found.append(graph.invoke(Command(resume={question.id: answer}), config))

    assert found[-1] == {"log": ["ask=a+b+c"]}
    assert journal.count("ask!") == 1


def test_parallel_questions_are_answered_by_id_in_turn(team: Team, journal: Journal) -> None:
    builder = beside(
        does(journal, "join"),
        a=asks(journal, "a", "a?"),
        b=asks(journal, "b", "b?"),
        c=asks(journal, "c", "c?"),
    )
    graphs = [team.worker().compile(builder) for _ in range(3)]
    config = team.thread()
    parked = graphs[0].invoke({}, config)
    ids = {found.value: found.id for found in parked["__interrupt__"]}

    graphs[0].invoke(Command(resume={ids["b?"]: "B"}), config)
    graphs[1].invoke(Command(resume={ids["c?"]: "C"}), config)
    found = graphs[2].invoke(Command(resume={ids["a?"]: "A"}), config)

    assert sorted(found["log"]) == ["a=A", "b=B", "c=C", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "c", "join")] == [1, 1, 1, 1]


def test_parallel_questions_answered_at_once_are_served_one_after_the_other(
    team: Team, journal: Journal, hold: Hold
) -> None:
    builder = beside(
        does(journal, "join"),
        a=asks(journal, "a", "a?", then=hold),
        b=asks(journal, "b", "b?"),
    )
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    parked = first.invoke({}, config)
    ids = {found.value: found.id for found in parked["__interrupt__"]}
    winner = Background(lambda: first.invoke(Command(resume={ids["a?"]: "A"}), config))
    hold.reached()

    early = outcome(lambda: second.invoke(Command(resume={ids["b?"]: "B"}), config))
    hold.open()
    winner.result()
    found = second.invoke(Command(resume={ids["b?"]: "B"}), config)

    assert isinstance(early, InProgress)
    assert sorted(found["log"]) == ["a=A", "b=B", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "join")] == [1, 1, 1]


def test_several_answers_by_id_in_one_delivery(team: Team, journal: Journal) -> None:
    builder = beside(does(journal, "join"), a=asks(journal, "a", "a?"), b=asks(journal, "b", "b?"))
    graph, config = team.worker().compile(builder), team.thread()
    parked = graph.invoke({}, config)
    answers = {found.id: found.value[0].upper() for found in parked["__interrupt__"]}

    found = graph.invoke(Command(resume=answers), config)
    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume=answers), config)

    assert sorted(found["log"]) == ["a=A", "b=B", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "join")] == [1, 1, 1]


def test_a_silent_node_beside_a_waiting_one_does_not_run_again(
    team: Team, journal: Journal
) -> None:
    """LangGraph before 1.2.16 leaves no trace of a node that answered with None."""

    def silent(state: Any) -> None:
        ask(state)

    ask = asks(journal, "a", "a?")
    builder: Any = StateGraph(State)
    builder.add_node("a", silent)
    builder.add_node("b", asks(journal, "b", "b?"))
    # Neither leads anywhere: an edge would be a trace.
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    graph, config = team.worker().compile(builder), team.thread()
    parked = graph.invoke({}, config)
    ids = {found.value: found.id for found in parked["__interrupt__"]}

    graph.invoke(Command(resume={ids["a?"]: "A"}), config)
    found = graph.invoke(Command(resume={ids["b?"]: "B"}), config)

    assert found == {"log": ["b=B"]}
    assert journal.count("a!") == journal.count("b!") == 1


def test_an_ambiguous_bare_answer_is_langgraphs_own_error(team: Team, journal: Journal) -> None:
    """And it leaves nothing behind: the right answers are served afterwards."""
    builder = beside(does(journal, "join"), a=asks(journal, "a", "a?"), b=asks(journal, "b", "b?"))
    graph, config = team.worker().compile(builder), team.thread()
    parked = graph.invoke({}, config)
    before = list(journal.lines)

    error = outcome(lambda: graph.invoke(Command(resume="?"), config))
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, ResumeRefused)
    assert "interrupt id" in str(error)
    assert journal.lines == before

    answers = {found.id: found.value[0].upper() for found in parked["__interrupt__"]}
    found = graph.invoke(Command(resume=answers), config)
    assert sorted(found["log"]) == ["a=A", "b=B", "join="]


@pytest.mark.kinds("memory", "memory-async", "sqlite", "postgres")
@pytest.mark.parametrize("answer", [False, 0, "", [], {"a": 1}, ["x", 1]], ids=repr)
def test_any_answer_is_an_answer(team: Team, journal: Journal, answer: Any) -> None:
    graph, config = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"))), team.thread()
    graph.invoke({}, config)

    assert graph.invoke(Command(resume=answer), config) == {"log": [f"ask={answer}"]}
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(Command(resume=answer), config)
    assert refused.value.same_answer is True


@pytest.mark.kinds("memory", "sqlite-async", "postgres")
def test_a_thread_id_may_be_a_number(team: Team, journal: Journal) -> None:
    graph = team.worker().compile(chain(ask=asks(journal, "ask", "sure?")))
    number = uuid.uuid4().int >> 70
    config: Any = {"configurable": {"thread_id": number}}
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), config)

    for thread in (number, str(number)):
        with pytest.raises(AlreadyConsumed):
            graph.invoke(Command(resume="yes"), {"configurable": {"thread_id": thread}})


@pytest.mark.kinds("memory", "memory-async", "sqlite-async")
def test_what_langgraph_rejects_consumes_nothing(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"))), team.thread()
    graph.invoke({}, config)

    # An empty command is an error of LangGraph's own, of a type that varies.
    assert not isinstance(outcome(lambda: graph.invoke(Command(), config)), (dict, ResumeRefused))
    assert journal.lines == ["ask"]
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["ask=yes"]}
