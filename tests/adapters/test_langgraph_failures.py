"""A run that failed keeps its answer consumed until somebody says how to go on."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import Policy
from remit_gates.errors import AlreadyConsumed
from tests.adapters.graphs import Boom, Journal, asks, beside, chain, does, failing, places
from tests.adapters.racing import outcome
from tests.adapters.workers import Team, on


NO: Any = Command(resume="no")
YES: Any = Command(resume="yes")


every_place = pytest.mark.parametrize("place", ["ask", "after", "inner"])


@every_place
def test_another_answer_is_refused_as_failed(team: Team, journal: Journal, place: str) -> None:
    builder = places(journal, place)
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    asked = first.invoke({}, config)["__interrupt__"][0]
    with pytest.raises(Boom):
        first.invoke(Command(resume={asked.id: "yes"}), config)
    before = list(journal.lines)

    others: list[Any] = [NO, Command(resume={asked.id: "no"})]
    for answer in others:
        with pytest.raises(AlreadyConsumed) as refused:
            second.invoke(answer, config)
        assert refused.value.failed
        assert refused.value.outcome is not None
        assert refused.value.outcome.state == "failed"
        assert refused.value.outcome.detail == "Boom"
        assert "invoke(None" in str(refused.value)

    assert journal.lines == before


@every_place
def test_the_run_goes_on_with_the_recorded_answer(team: Team, journal: Journal, place: str) -> None:
    builder = places(journal, place)
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    with pytest.raises(Boom):
        first.invoke(YES, config)

    assert second.invoke(None, config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == journal.count("after!") == 1
    with pytest.raises(AlreadyConsumed) as refused:
        first.invoke(YES, config)
    assert not refused.value.failed


@every_place
def test_the_same_delivery_may_try_again(team: Team, journal: Journal, place: str) -> None:
    builder = places(journal, place)
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread(remit_delivery="m")
    first.invoke({}, config)
    with pytest.raises(Boom):
        first.invoke(YES, config)

    with pytest.raises(AlreadyConsumed):
        second.invoke(YES, on(config, remit_delivery="n"))
    assert second.invoke(YES, config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == journal.count("after!") == 1
    with pytest.raises(AlreadyConsumed):
        second.invoke(YES, config)


@pytest.mark.parametrize("place", ["ask", "inner"])
def test_retry_uses_the_new_answer(team: Team, journal: Journal, place: str) -> None:
    """Where LangGraph itself would go on with the one that it has on record."""
    graph = team.worker(policy=Policy(on_failure="retry")).compile(places(journal, place))
    config = team.thread()
    graph.invoke({}, config)
    with pytest.raises(Boom):
        graph.invoke(NO, config)

    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == 1
    with pytest.raises(AlreadyConsumed):
        graph.invoke(NO, config)


@pytest.mark.parametrize("place", ["ask", "inner"])
def test_retry_by_id_uses_the_new_answer(team: Team, journal: Journal, place: str) -> None:
    graph = team.worker(policy=Policy(on_failure="retry")).compile(places(journal, place, 2))
    config = team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    for answer in ("a", "b"):
        with pytest.raises(Boom):
            graph.invoke(Command(resume={asked.id: answer}), config)

    assert graph.invoke(Command(resume={asked.id: "c"}), config)["log"] == ["ask=c", "after="]
    assert journal.count("ask!") == 1


@pytest.mark.parametrize("place", ["ask", "inner"])
def test_a_second_question_that_failed_is_retried_with_the_new_answer(
    team: Team, journal: Journal, place: str
) -> None:
    """And the first one keeps the answer that it had."""
    node = asks(journal, "ask", "1?", "2?", then=failing())
    builder = chain(ask=node)
    if place == "inner":
        builder = chain(outer=builder.compile())
    graph = team.worker(policy=Policy(on_failure="retry")).compile(builder)
    config = team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="a"), config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="b"), config)

    assert graph.invoke(Command(resume="c"), config) == {"log": ["ask=a+c"]}


@pytest.mark.parametrize("place", ["ask", "inner"])
def test_released_it_takes_another_answer(team: Team, journal: Journal, place: str) -> None:
    worker = team.worker()
    graph, config = worker.compile(places(journal, place)), team.thread()
    graph.invoke({}, config)
    with pytest.raises(Boom):
        graph.invoke(NO, config)

    assert team.release(graph, config, actor="ann", reason="asked again")
    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}
    assert not team.release(graph, config)
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config)
    assert journal.count("ask!") == 1


def test_a_failed_second_question_goes_on_with_both_answers(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "1?", "2?", then=failing()))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="a"), config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="b"), config)

    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(Command(resume="c"), config)
    assert refused.value.failed
    assert graph.invoke(None, config) == {"log": ["ask=a+b"]}


def test_a_node_fails_beside_one_that_still_waits(team: Team, journal: Journal) -> None:
    builder = beside(
        does(journal, "join"),
        a=asks(journal, "a", "a?", then=failing()),
        b=asks(journal, "b", "b?"),
    )
    graph, config = team.worker().compile(builder), team.thread()
    ids = {found.value: found.id for found in graph.invoke({}, config)["__interrupt__"]}
    with pytest.raises(Boom):
        graph.invoke(Command(resume={ids["a?"]: "A"}), config)

    # Answering b would do the failed a's work again, which only a continue may.
    refused = outcome(lambda: graph.invoke(Command(resume={ids["b?"]: "B"}), config))
    assert isinstance(refused, AlreadyConsumed)
    assert refused.failed
    graph.invoke(None, config)
    found = graph.invoke(Command(resume={ids["b?"]: "B"}), config)

    assert sorted(found["log"]) == ["a=A", "b=B", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "join")] == [1, 1, 1]


def test_an_effect_that_was_sent_before_the_failure_is_not_sent_by_another_answer(
    team: Team, journal: Journal
) -> None:
    then = failing()

    def effect() -> None:
        journal("sent")
        then()

    builder = chain(ask=asks(journal, "ask", "sure?", then=effect))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    outcomes = [outcome(lambda: graph.invoke(YES, config)) for _ in range(5)]

    assert isinstance(outcomes[0], Boom)
    assert {type(found) for found in outcomes[1:]} == {AlreadyConsumed}
    assert journal.count("sent") == 1
