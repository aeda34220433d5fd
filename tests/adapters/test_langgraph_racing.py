"""Of several deliveries to one pause, one is served and no node runs for another."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed, InProgress, ResumeRefused
from remit_gates.langgraph import gate
from tests.adapters.graphs import Hold, Journal, approval, asks, chain, does
from tests.adapters.racing import Background, outcome, race
from tests.adapters.workers import Team, on


YES: Any = Command(resume="yes")


def split(outcomes: list[Any]) -> tuple[list[Any], list[ResumeRefused]]:
    """What was served, and what was refused; anything else is a fault."""
    refused = [found for found in outcomes if isinstance(found, ResumeRefused)]
    served = [found for found in outcomes if isinstance(found, dict)]
    assert len(served) + len(refused) == len(outcomes), outcomes
    return served, refused


def test_one_of_eight_racers_on_one_saver_is_served(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)

    served, refused = split(race(*[lambda: graph.invoke(YES, config)] * 8))

    assert served == [{"log": ["ask=yes", "after="]}]
    assert {type(error) for error in refused} <= {InProgress, AlreadyConsumed}
    assert len(refused) == 7
    assert journal.lines == ["ask", "ask", "ask!", "after", "after!"]


def test_one_of_four_workers_is_served(team: Team, journal: Journal) -> None:
    graphs = [team.worker().compile(approval(journal)) for _ in range(4)]
    config = team.thread()
    graphs[0].invoke({}, config)

    served, refused = split(race(*[partial(graph.invoke, YES, config) for graph in graphs]))

    assert served == [{"log": ["ask=yes", "after="]}]
    assert {type(error) for error in refused} <= {InProgress, AlreadyConsumed}
    assert journal.lines == ["ask", "ask", "ask!", "after", "after!"]


@pytest.mark.parametrize("place", ["ask", "after"])
def test_a_duplicate_is_refused_while_a_node_is_in_flight(
    team: Team, journal: Journal, hold: Hold, place: str
) -> None:
    holds = {place: hold}
    builder = chain(
        ask=asks(journal, "ask", "sure?", then=holds.get("ask")),
        after=does(journal, "after", then=holds.get("after")),
    )
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    winner = Background(lambda: first.invoke(YES, config))
    hold.reached()

    refusals = [outcome(partial(second.invoke, given, config)) for given in (YES, YES, None)]
    hold.open()

    assert winner.result() == {"log": ["ask=yes", "after="]}
    for error in refusals:
        assert isinstance(error, InProgress)
        assert error.claim is not None
        assert error.retry_after is not None
        assert 0 < error.retry_after <= 30
    assert journal.lines == ["ask", "ask", "ask!", "after", "after!"]


def test_a_duplicate_after_the_end_is_refused(team: Team, journal: Journal) -> None:
    first, second = (team.worker().compile(approval(journal)) for _ in range(2))
    config = team.thread()
    first.invoke({}, config)
    first.invoke(YES, config)

    with pytest.raises(AlreadyConsumed) as refused:
        second.invoke(YES, config)

    assert refused.value.consumption is not None
    assert refused.value.consumption.outcome is not None
    assert refused.value.consumption.outcome.state == "finished"
    assert not refused.value.failed
    assert journal.count("ask!") == journal.count("after!") == 1


@pytest.mark.parametrize("static", ["interrupt_before", "interrupt_after"])
def test_four_racers_at_a_static_breakpoint_run_its_node_once(
    team: Team, journal: Journal, hold: Hold, static: str
) -> None:
    """And none of them passes the next breakpoint."""
    builder = chain(
        one=does(journal, "one"), two=does(journal, "two", hold), three=does(journal, "three")
    )
    stops = {"interrupt_before": ["two", "three"], "interrupt_after": ["one", "two"]}[static]
    graphs = [team.worker().compile(builder, **{static: stops}) for _ in range(4)]
    config = team.thread()
    graphs[0].invoke({}, config)
    assert journal.lines == ["one", "one!"]

    racers = [Background(partial(graph.invoke, None, config)) for graph in graphs]
    hold.reached()
    late = outcome(lambda: graphs[0].invoke(None, config))
    # The losers have returned before the winner goes on; later, they would be on time for
    # the next breakpoint.
    Background.first(3, racers)
    hold.open()
    served, refused = split([racer.result() for racer in racers])

    assert isinstance(late, InProgress)
    assert len(served) == 1
    assert {type(error) for error in refused} == {InProgress}
    assert journal.lines == ["one", "one!", "two", "two!"]
    graphs[1].invoke(None, config)
    assert journal.lines == ["one", "one!", "two", "two!", "three", "three!"]


def test_a_bare_answer_passes_a_static_breakpoint(team: Team, journal: Journal) -> None:
    """As LangGraph has it."""
    builder = chain(one=does(journal, "one"), two=does(journal, "two"))
    graph = team.worker().compile(builder, interrupt_before=["two"])
    config = team.thread()
    graph.invoke({}, config)

    assert graph.invoke(YES, config) == {"log": ["one=", "two="]}
    assert journal.count("two!") == 1


@pytest.mark.parametrize("by_id", [False, True])
def test_a_loser_that_loads_late_is_told_what_happened(
    journal: Journal, hold: Hold, by_id: bool
) -> None:
    """Between its look at the record and its load, the winner came and went."""

    class Late(InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            if "__pregel_runtime" in config["configurable"]:
                hold()
            return super().get_tuple(config)

    saver = InMemorySaver()
    late: Any = Late()
    late.__dict__ = saver.__dict__
    first, second = (approval(journal).compile(checkpointer=gate(each)) for each in (saver, late))
    config: Any = on("t")
    asked = first.invoke({}, config)["__interrupt__"][0]
    answer: Any = Command(resume={asked.id: "yes"} if by_id else "yes")
    loser = Background(lambda: second.invoke(answer, config))
    hold.reached()
    first.invoke(YES, config)
    hold.open()

    assert isinstance(loser.result(), AlreadyConsumed)
    assert journal.count("ask!") == 1
