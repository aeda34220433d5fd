"""An answer that is on record never answers another question than its own.

LangGraph keeps it at the checkpoint and hands it to the next interrupt that asks (its issue
8837), so that a bare `invoke(None)` would answer a question that nobody was asked.
"""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed
from tests.adapters.graphs import Boom, Journal, asks, beside, chain, does, failing
from tests.adapters.workers import Team


YES: Any = Command(resume="yes")


def nested(builder: Any, inner: bool) -> Any:
    return chain(outer=builder.compile()) if inner else builder


inner_or_not = pytest.mark.parametrize("inner", [False, True], ids=["root", "subgraph"])


@inner_or_not
def test_a_continue_asks_the_next_question_of_a_node(
    team: Team, journal: Journal, inner: bool
) -> None:
    builder = nested(chain(ask=asks(journal, "ask", "refund 10?", "wire 10000?")), inner)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)

    for _ in range(2):
        parked = graph.invoke(None, config)
        assert [found.value for found in parked["__interrupt__"]] == ["wire 10000?"]
    assert journal.count("ask!") == 0
    assert graph.invoke(Command(resume="no"), config) == {"log": ["ask=yes+no"]}


@inner_or_not
def test_a_continue_asks_the_first_question_again(
    team: Team, journal: Journal, inner: bool
) -> None:
    builder = nested(chain(ask=asks(journal, "ask", "sure?")), inner)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)

    assert [found.value for found in graph.invoke(None, config)["__interrupt__"]] == ["sure?"]
    assert graph.invoke(YES, config) == {"log": ["ask=yes"]}


@inner_or_not
def test_a_continue_asks_the_next_node(team: Team, journal: Journal, inner: bool) -> None:
    builder = nested(chain(one=asks(journal, "one", "1?"), two=asks(journal, "two", "2?")), inner)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)

    assert [found.value for found in graph.invoke(None, config)["__interrupt__"]] == ["2?"]
    assert journal.count("two!") == 0
    assert graph.invoke(Command(resume="b"), config) == {"log": ["one=yes", "two=b"]}


@inner_or_not
def test_after_a_failure_the_answer_goes_to_its_own_question_only(
    team: Team, journal: Journal, inner: bool
) -> None:
    """The node failed between its two questions: the answer to the first is on record, and
    the continue asks the second."""
    fail = failing()

    def node(state: Any) -> Any:
        first = asks(journal, "first", "1?")(state)["log"]
        fail()
        second = asks(journal, "second", "2?")(state)["log"]
        return {"log": [*first, *second]}

    builder = nested(chain(ask=node), inner)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="a"), config)

    parked = graph.invoke(None, config)
    assert [found.value for found in parked["__interrupt__"]] == ["2?"]
    assert [found.value for found in graph.invoke(None, config)["__interrupt__"]] == ["2?"]
    assert journal.count("second!") == 0
    assert graph.invoke(Command(resume="b"), config) == {"log": ["first=a", "second=b"]}


@inner_or_not
def test_a_failure_at_the_second_question_leaves_the_first_answered(
    team: Team, journal: Journal, inner: bool
) -> None:
    builder = nested(chain(ask=asks(journal, "ask", "1?", "2?", "3?", then=failing())), inner)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="a"), config)
    graph.invoke(Command(resume="b"), config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="c"), config)

    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume="d"), config)
    assert graph.invoke(None, config) == {"log": ["ask=a+b+c"]}


def test_a_continue_beside_an_answered_question_answers_nothing(
    team: Team, journal: Journal
) -> None:
    builder = beside(does(journal, "join"), a=asks(journal, "a", "a?"), b=asks(journal, "b", "b?"))
    graph, config = team.worker().compile(builder), team.thread()
    ids = {found.value: found.id for found in graph.invoke({}, config)["__interrupt__"]}
    graph.invoke(Command(resume={ids["a?"]: "A"}), config)

    assert [found.value for found in graph.invoke(None, config)["__interrupt__"]] == ["b?"]
    assert journal.count("b!") == 0
    found = graph.invoke(Command(resume={ids["b?"]: "B"}), config)
    assert sorted(found["log"]) == ["a=A", "b=B", "join="]
    assert journal.count("a!") == 1


@pytest.mark.parametrize("update", [{"log": ["noted"]}, {}])
def test_an_update_alone_answers_nothing(team: Team, journal: Journal, update: Any) -> None:
    builder = chain(ask=asks(journal, "ask", "1?", "2?"))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="a"), config)

    if update:
        graph.invoke(Command(update=update), config)
    assert [found.value for found in graph.waiting(config)] == ["2?"]
    assert graph.invoke(Command(resume="b"), config)["log"][-1] == "ask=a+b"


@inner_or_not
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.kinds("memory", "sqlite-async", "postgres", "redis", "redis-async")
def test_however_durable_a_run_is(
    team: Team, journal: Journal, durability: str, inner: bool
) -> None:
    """Both questions are answered once, and what failed goes on with what it was answered."""
    builder = nested(chain(ask=asks(journal, "ask", "1?", "2?", then=failing())), inner)
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config, durability=durability)
    graph.invoke(Command(resume="a"), config, durability=durability)
    parked = graph.invoke(None, config, durability=durability)
    assert [found.value for found in parked["__interrupt__"]] == ["2?"]
    with pytest.raises(Boom):
        graph.invoke(Command(resume="b"), config, durability=durability)
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(Command(resume="z"), config, durability=durability)

    assert refused.value.failed
    assert graph.invoke(None, config, durability=durability) == {"log": ["ask=a+b"]}
    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume="b"), config, durability=durability)
