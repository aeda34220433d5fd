"""`validate=`: a state that does not fit is refused before anything of it is persisted."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from remit_gates.errors import AlreadyConsumed, InvalidState, UsageError
from remit_gates.langgraph import gate
from remit_gates.langgraph._versions import installed
from tests.adapters.graphs import Journal, asks, chain
from tests.adapters.workers import Team


class Model(BaseModel):
    log: list[str]


class Typed(TypedDict):
    log: list[str]


def called(state: dict[str, Any]) -> None:
    if not all(isinstance(item, str) for item in state.get("log", ())):
        raise ValueError("a line of the log is no string")


every_form = pytest.mark.parametrize("form", [Model, Typed, called], ids=["model", "typed", "call"])

SOME = pytest.mark.kinds(
    "memory", "memory-async", "sqlite-async", "postgres", "redis-async", "foreign"
)


@SOME
@every_form
def test_what_fits_is_persisted(team: Team, journal: Journal, form: Any) -> None:
    graph = team.worker(validate=form).compile(chain(ask=asks(journal, "ask", "sure?")))
    config = team.thread()
    graph.invoke({}, config)

    assert graph.invoke(Command(resume="yes"), config) == {"log": ["ask=yes"]}


@SOME
@every_form
def test_what_does_not_fit_is_not_persisted(team: Team, journal: Journal, form: Any) -> None:
    def node(state: Any) -> Any:
        return {"log": [451]}

    builder = chain(ask=asks(journal, "ask", "sure?"), node=node)
    graph, config = team.worker(validate=form).compile(builder), team.thread()
    graph.invoke({}, config)

    with pytest.raises(InvalidState) as refused:
        graph.invoke(Command(resume="yes"), config)

    assert config["configurable"]["thread_id"] in str(refused.value)
    for state in graph.history(config):
        assert 451 not in state.values.get("log", [])
    # It failed like any run: its answer is consumed.
    with pytest.raises(AlreadyConsumed) as late:
        graph.invoke(Command(resume="no"), config)
    assert late.value.failed


@pytest.mark.skipif(
    installed() < (1, 2, 9),
    reason="before LangGraph 1.2.9 an update may apply what is pending as well",
)
@SOME
def test_a_node_that_finished_is_not_run_again(team: Team, journal: Journal) -> None:
    """Its effect has happened. What it returned is replaced by hand."""

    def node(state: Any) -> Any:
        journal("node")
        return {"log": [451]}

    builder = chain(ask=asks(journal, "ask", "sure?"), node=node)
    graph, config = team.worker(validate=called).compile(builder), team.thread()
    graph.invoke({}, config)
    with pytest.raises(InvalidState):
        graph.invoke(Command(resume="yes"), config)
    with pytest.raises(InvalidState):
        graph.invoke(None, config)

    graph.update(config, {"log": ["mended"]}, as_node="node")
    assert graph.invoke(None, config) == {"log": ["ask=yes", "mended"]}
    assert journal.count("node") == 1


@SOME
def test_an_input_that_does_not_fit_is_refused(team: Team, journal: Journal) -> None:
    graph = team.worker(validate=called).compile(chain(ask=asks(journal, "ask", "sure?")))
    config = team.thread()
    with pytest.raises(InvalidState):
        graph.invoke({"log": [451]}, config)

    assert [state.values.get("log", []) for state in graph.history(config)] == [[]]
    graph.invoke({"log": ["fits"]}, config)
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["fits", "ask=yes"]}


@SOME
def test_a_subgraphs_own_state_is_not_the_graphs(team: Team, journal: Journal) -> None:
    class Inner(TypedDict, total=False):
        other: int
        log: Annotated[list[str], operator.add]

    from langgraph.graph import StateGraph

    inner = StateGraph(Inner)
    inner.add_node("n", lambda state: {"other": 1, "log": ["inner"]})
    inner.set_entry_point("n")
    builder = chain(ask=asks(journal, "ask", "sure?"), outer=inner.compile())
    graph = team.worker(validate=Model).compile(builder)
    config = team.thread()
    graph.invoke({}, config)

    assert graph.invoke(Command(resume="yes"), config)["log"][:1] == ["ask=yes"]


@pytest.mark.parametrize("form", [3, "model", object()])
def test_what_cannot_validate_is_refused_at_once(form: Any) -> None:
    with pytest.raises(UsageError, match="validate="):
        gate(InMemorySaver(), validate=form)
