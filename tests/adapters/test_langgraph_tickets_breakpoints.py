"""The ticket of a static breakpoint passes that one, once, and no other."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import current_claim
from remit_gates.errors import (
    AlreadyConsumed,
    InProgress,
    StaleTicket,
    UsageError,
)
from tests.adapters.graphs import Boom, Hold, Journal, approval, chain, does, failing
from tests.adapters.racing import Background, race
from tests.adapters.ticketing import (
    SOME,
    deliver,
    waiting,
)
from tests.adapters.workers import Team


def steps(journal: Journal, then: Any = None) -> Any:
    return chain(a=does(journal, "a"), b=does(journal, "b", then), c=does(journal, "c"))


WHERE: Any = [{"interrupt_before": ["b", "c"]}, {"interrupt_after": ["a", "b"]}]


@pytest.mark.parametrize("where", WHERE)
def test_a_ticket_of_a_breakpoint_passes_that_one_alone(
    team: Team, journal: Journal, where: Any
) -> None:
    builder = steps(journal)
    first, second = (team.worker().compile(builder, **where) for _ in range(2))
    config = team.thread()
    first.invoke({}, config)
    (ticket,) = waiting(first, config)
    assert (ticket.interrupt_id, ticket.value, ticket.command()) == (None, None, None)

    assert deliver(first, ticket)["log"] == ["a=", "b="]
    with pytest.raises(AlreadyConsumed) as refused:
        deliver(second, ticket)
    assert refused.value.outcome is not None
    assert refused.value.outcome.state == "parked"
    assert journal.count("c") == 0

    (last,) = waiting(second, config)
    assert deliver(second, last)["log"] == ["a=", "b=", "c="]
    assert waiting(second, config) == ()
    for spent in (ticket, last):
        with pytest.raises(AlreadyConsumed):
            deliver(first, spent)


def test_racers_at_a_breakpoint_with_one_ticket(team: Team, journal: Journal) -> None:
    graphs = [team.worker().compile(steps(journal), interrupt_before=["b", "c"]) for _ in range(3)]
    config = team.thread()
    graphs[0].invoke({}, config)
    (ticket,) = waiting(graphs[0], config)

    found = race(*(partial(deliver, graph, ticket) for graph in graphs))

    assert len([result for result in found if isinstance(result, dict)]) == 1
    refused = [result for result in found if not isinstance(result, dict)]
    assert {type(result) for result in refused} <= {InProgress, AlreadyConsumed}
    assert (journal.count("b"), journal.count("c")) == (1, 0)


@SOME
def test_a_breakpoint_that_was_passed_without_its_ticket_is_stale(
    team: Team, journal: Journal
) -> None:
    builder = steps(journal)
    graph = team.worker().compile(builder, interrupt_before=["b", "c"])
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    graph.invoke(None, config)

    with pytest.raises(StaleTicket):
        deliver(graph, ticket)
    assert journal.count("c") == 0


@SOME
def test_a_breakpoint_whose_node_failed_is_gone_on_with_by_hand(
    team: Team, journal: Journal
) -> None:
    """With the same key, whoever passed it."""
    keys: list[str] = []

    def noted() -> None:
        claim = current_claim()
        assert claim is not None
        keys.append(claim.idempotency_key)
        if len(keys) < 4:
            raise Boom

    graph = team.worker().compile(steps(journal, noted), interrupt_before=["b"])
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket)

    assert waiting(graph, config) == ()
    with pytest.raises(AlreadyConsumed) as refused:
        deliver(graph, ticket)
    assert refused.value.failed
    with pytest.raises(Boom):
        graph.invoke(None, config)
    assert team.release(graph, config)
    assert waiting(graph, config) == (ticket,)
    with pytest.raises(Boom):
        deliver(graph, ticket)
    assert graph.invoke(None, config)["log"] == ["a=", "b=", "c="]
    assert len(keys) == 4
    assert len(set(keys)) == 1


@SOME
def test_a_node_that_failed_past_its_breakpoint_is_not_run_by_the_ticket(
    team: Team, journal: Journal
) -> None:
    graph = team.worker().compile(steps(journal, failing()), interrupt_before=["b"])
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        graph.invoke(None, config)

    assert waiting(graph, config) == ()
    with pytest.raises(StaleTicket):
        deliver(graph, ticket)
    assert journal.count("b") == 1
    assert graph.invoke(None, config)["log"] == ["a=", "b=", "c="]


@SOME
@pytest.mark.parametrize("bare", [False, True])
def test_a_question_behind_a_breakpoint(team: Team, journal: Journal, bare: bool) -> None:
    """One checkpoint, two pauses."""
    graph = team.worker().compile(approval(journal), interrupt_before=["ask"])
    config = team.thread()
    graph.invoke({}, config)
    (stands,) = waiting(graph, config)
    graph.invoke(None, config if bare else stands.config)
    (asks_now,) = waiting(graph, config)
    assert (stands.value, asks_now.value) == (None, "sure?")

    with pytest.raises(StaleTicket if bare else AlreadyConsumed):
        deliver(graph, stands)
    assert journal.count("ask") == 1
    assert deliver(graph, asks_now, "yes") == {"log": ["ask=yes", "after="]}


@SOME
def test_a_run_that_has_not_come_to_its_breakpoint_has_no_ticket(
    team: Team, journal: Journal, hold: Hold
) -> None:
    builder = chain(a=does(journal, "a", hold), b=does(journal, "b"))
    first, second = (team.worker().compile(builder, interrupt_before=["b"]) for _ in range(2))
    config = team.thread()
    assert waiting(first, config) == ()
    started = Background(lambda: first.invoke({}, config, durability="sync"))
    hold.reached()

    assert waiting(second, config) == ()
    hold.open()
    assert isinstance(started.result(), dict)
    assert len(waiting(second, config)) == 1


@pytest.mark.kinds("memory")
def test_an_answer_and_a_breakpoint_do_not_go_together(team: Team, journal: Journal) -> None:
    graph = team.worker().compile(steps(journal), interrupt_before=["b"])
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)

    with pytest.raises(UsageError, match="takes no answer"):
        ticket.command("no")
    with pytest.raises(UsageError, match="takes no answer"):
        graph.invoke(Command(resume="no"), ticket.config)
    assert journal.count("b") == 0
