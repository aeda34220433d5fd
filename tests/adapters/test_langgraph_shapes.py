"""Whatever a graph is made of, each of its questions can be answered, and once."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed, NotParked, ResumeRefused
from tests.adapters.graphs import Journal, State, asks, beside, chain, does
from tests.adapters.workers import Team


def within(journal: Journal, *questions: str, durable: bool = False) -> Any:
    """A graph whose only node is a graph with one node that asks."""
    inner = chain(inner=asks(journal, "inner", *questions)).compile(checkpointer=durable or None)
    return chain(outer=inner, after=does(journal, "after"))


@pytest.mark.parametrize("durable", [False, True])
def test_a_question_in_a_subgraph(team: Team, journal: Journal, durable: bool) -> None:
    builder = within(journal, "sure?", durable=durable)
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)

    found = second.invoke(Command(resume="yes"), config)
    assert found == {"log": ["inner=yes", "after="]}
    with pytest.raises(AlreadyConsumed):
        first.invoke(Command(resume="yes"), config)
    assert journal.count("inner!") == journal.count("after!") == 1


def test_two_questions_in_one_subgraph(team: Team, journal: Journal) -> None:
    builder = within(journal, "first?", "second?")
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)

    parked = second.invoke(Command(resume="a"), config)
    assert [found.value for found in parked["__interrupt__"]] == ["second?"]
    found = first.invoke(Command(resume="b"), config)
    assert found == {"log": ["inner=a+b", "after="]}
    assert journal.count("inner!") == journal.count("after!") == 1


def test_two_nodes_of_one_subgraph_ask(team: Team, journal: Journal) -> None:
    inner = chain(x=asks(journal, "x", "x?"), y=asks(journal, "y", "y?")).compile()
    builder = chain(outer=inner, after=does(journal, "after"))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)

    second.invoke(Command(resume="a"), config)
    found = first.invoke(Command(resume="b"), config)
    assert found == {"log": ["x=a", "y=b", "after="]}
    assert [journal.count(f"{name}!") for name in ("x", "y", "after")] == [1, 1, 1]


def test_questions_of_parallel_subgraphs_by_id(team: Team, journal: Journal) -> None:
    def child(name: str) -> Any:
        return chain(inner=asks(journal, name, f"{name}1?", f"{name}2?")).compile()

    builder = beside(does(journal, "join"), a=child("a"), b=child("b"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)

    found: list[Any] = []
    for question in ("a1?", "b1?", "b2?", "a2?"):
        (asked,) = [waits for waits in graph.waiting(config) if waits.value == question]
        found.append(graph.invoke(Command(resume={asked.id: question[:2].upper()}), config))

    assert sorted(found[-1]["log"]) == ["a=A1+A2", "b=B1+B2", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "join")] == [1, 1, 1]


def test_a_question_in_a_loop_is_answered_every_round(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "more?"))
    builder.edges.discard(("ask", "__end__"))
    builder.add_conditional_edges(
        "ask", lambda state: "__end__" if state["log"][-1] == "ask=no" else "ask"
    )
    graphs = [team.worker().compile(builder) for _ in range(2)]
    config = team.thread()
    graphs[0].invoke({}, config)

    for round_ in range(4):
        graphs[round_ % 2].invoke(Command(resume="yes"), config)
    found = graphs[0].invoke(Command(resume="no"), config)

    assert found == {"log": ["ask=yes"] * 4 + ["ask=no"]}
    assert journal.count("ask!") == 5


def test_an_answer_with_an_update(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    command: Any = Command(resume="yes", update={"log": ["noted"]})

    assert graph.invoke(command, config) == {"log": ["noted", "ask=yes", "after="]}
    with pytest.raises(AlreadyConsumed):
        graph.invoke(command, config)
    assert graph.state(config).values == {"log": ["noted", "ask=yes", "after="]}
    assert journal.count("ask!") == journal.count("after!") == 1


def test_an_answer_with_a_goto(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    builder.add_node("aside", does(journal, "aside"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    command: Any = Command(resume="yes", goto="aside")

    found = graph.invoke(command, config)
    with pytest.raises(ResumeRefused):
        graph.invoke(command, config)

    assert sorted(found["log"]) == ["after=", "aside=", "ask=yes"]
    assert [journal.count(f"{name}!") for name in ("ask", "aside", "after")] == [1, 1, 1]


def test_an_update_without_an_answer_leaves_the_question_open(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)

    graph.invoke(Command(update={"log": ["noted"]}), config)
    assert graph.invoke(Command(resume="yes"), config)["log"][-2:] == ["ask=yes", "after="]
    assert journal.count("ask!") == journal.count("after!") == 1


def test_a_task_and_an_entrypoint_of_the_functional_api(team: Team, journal: Journal) -> None:
    from langgraph.func import entrypoint, task

    from tests.adapters.workers import Graph

    @task
    def charge(what: str) -> str:
        return str(asks(journal, "charge", "sure?")({})["log"])

    def flow(worker: Any) -> Graph:
        @entrypoint(checkpointer=worker.saver)
        def run(what: str) -> str:
            journal("run")
            first = charge(what).result()
            return f"{first} {asks(journal, 'final', 'really?')({})['log']}"

        return Graph(worker, run)

    first, second = flow(team.worker()), flow(team.worker())
    config = team.thread()
    first.invoke("x", config)
    second.invoke(Command(resume="a"), config)
    found = first.invoke(Command(resume="b"), config)

    assert found == "['charge=a'] ['final=b']"
    with pytest.raises(AlreadyConsumed):
        second.invoke(Command(resume="b"), config)
    assert journal.count("charge!") == journal.count("final!") == 1


def test_new_input_on_a_parked_run_asks_anew(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    old = graph.invoke({}, config)["__interrupt__"][0]

    new = graph.invoke({"log": ["again"]}, config)["__interrupt__"][0]
    assert new.id != old.id
    with pytest.raises(NotParked):
        graph.invoke(Command(resume={old.id: "stale"}), config)

    assert graph.invoke(Command(resume={new.id: "yes"}), config)["log"][-2:] == [
        "ask=yes",
        "after=",
    ]
    assert journal.count("ask!") == 1


def test_each_send_asks_its_own_question(team: Team, journal: Journal) -> None:
    from langgraph.graph import START, StateGraph
    from langgraph.types import Send, interrupt

    def pay(state: Any) -> Any:
        journal(state["who"])
        answer = interrupt(state["who"])
        journal(f"{state['who']}!")
        return {"log": [f"{state['who']}={answer}"]}

    builder = StateGraph(State)
    builder.add_node("pay", pay)
    builder.add_conditional_edges(
        START, lambda state: [Send("pay", {"who": who}) for who in ("ann", "bob")], ["pay"]
    )
    graph, config = team.worker().compile(builder), team.thread()
    parked = graph.invoke({}, config)
    ids = {found.value: found.id for found in parked["__interrupt__"]}

    graph.invoke(Command(resume={ids["bob"]: "no"}), config)
    found = graph.invoke(Command(resume={ids["ann"]: "yes"}), config)

    assert sorted(found["log"]) == ["ann=yes", "bob=no"]
    assert journal.count("ann!") == journal.count("bob!") == 1
