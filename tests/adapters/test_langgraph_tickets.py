"""A ticket answers the question that a person was shown, or none at all."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates.errors import (
    AlreadyConsumed,
    InProgress,
    StaleTicket,
)
from remit_gates.langgraph import Ticket
from tests.adapters.graphs import Hold, Journal, approval, asks, beside, does
from tests.adapters.racing import Background, outcome
from tests.adapters.ticketing import (
    SOME,
    deliver,
    one_node,
    one_node_of_a_subgraph,
    one_subgraph,
    two_nodes,
    waiting,
)
from tests.adapters.workers import Graph, Team, on


@pytest.mark.parametrize("shape", [one_node, two_nodes, one_subgraph, one_node_of_a_subgraph])
def test_the_first_approval_does_not_approve_the_wire(
    team: Team, journal: Journal, shape: Any
) -> None:
    """The case that tickets are for."""
    builder = shape(journal)
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    (refund,) = waiting(first, config)
    assert refund.value == "refund $10?"
    assert deliver(first, refund, "yes")["__interrupt__"][0].value == "wire $10,000?"
    before = team.pending(second, config), list(journal.lines)

    # The webhook comes again, with the text alone or as a bare answer.
    again: list[Any] = [
        lambda: deliver(second, refund, "yes"),
        lambda: deliver(second, refund, "yes", remit_delivery="another message"),
        lambda: second.invoke(Command(resume="yes"), refund.config),
    ]
    for call in again:
        with pytest.raises(AlreadyConsumed) as refused:
            call()
        assert refused.value.same_answer is True
        assert refused.value.outcome is not None
        assert refused.value.outcome.state == "parked"
    with pytest.raises(AlreadyConsumed) as other:
        deliver(second, refund, "no")
    assert other.value.same_answer is False

    assert (team.pending(second, config), journal.lines) == before
    assert journal.count("pay!") == 0
    (wire,) = waiting(second, config)
    assert (wire.value, wire == refund) == ("wire $10,000?", False)
    assert "__interrupt__" not in deliver(second, wire, "no")
    assert journal.count("pay!") == 1


def test_of_racers_with_one_ticket_one_is_served(team: Team, journal: Journal, hold: Hold) -> None:
    builder = approval(journal, hold)
    graphs = [team.worker().compile(builder) for _ in range(3)]
    config = team.thread()
    graphs[0].invoke({}, config)
    (ticket,) = waiting(graphs[0], config)
    calls = [partial(deliver, graph, ticket, "yes") for graph in graphs]
    racers = [Background(call) for call in calls]
    Background.first(2, racers)
    hold.open()
    found = [racer.result() for racer in racers]

    assert [result for result in found if isinstance(result, dict)] == [
        {"log": ["ask=yes", "after="]}
    ]
    refused = [result for result in found if not isinstance(result, dict)]
    assert [type(result) for result in refused] == [InProgress, InProgress]
    assert [result.same_answer for result in refused] == [True, True]
    assert "with the same answer as this" in str(refused[0])
    assert journal.count("ask!") == journal.count("after!") == 1


@SOME
def test_a_ticket_delivered_twice_gets_what_became_of_it(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    deliver(graph, ticket, "yes", remit_actor="ann")
    head = graph.state(config).config["configurable"]["checkpoint_id"]

    with pytest.raises(AlreadyConsumed) as refused:
        deliver(graph, ticket, "yes")

    error = refused.value
    assert error.consumption is not None
    assert error.outcome is not None
    assert (error.outcome.state, error.outcome.position) == ("finished", head)
    assert (error.consumption.actor, error.pauses) == ("ann", (ticket.pause,))
    assert error.consumption.until is not None
    assert error.consumption.since <= error.consumption.until
    assert (error.same_answer, error.running, error.failed) == (True, False, False)
    for words in ("answered by ann", "the same answer", "its run finished", head):
        assert words in str(error)
    assert waiting(graph, config) == ()


def test_a_question_that_new_input_replaced_is_stale(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    (old,) = waiting(graph, config)
    graph.invoke({"log": ["again"]}, config)
    before = team.pending(graph, config), list(journal.lines)

    late: list[Any] = [old.command("yes"), Command(resume="yes"), None, Command(goto="after")]
    for given in late:
        with pytest.raises(StaleTicket, match="does not wait at the pause") as refused:
            graph.invoke(given, old.config)
        assert (refused.value.http_status, refused.value.pauses) == (410, (old.pause,))

    assert (team.pending(graph, config), journal.lines) == before
    (new,) = waiting(graph, config)
    assert deliver(graph, new, "yes") == {"log": ["again", "ask=yes", "after="]}


@SOME
def test_a_question_of_an_edited_state_is_stale(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    (old,) = waiting(graph, config)
    graph.update(config, {"log": ["edited"]})

    with pytest.raises(StaleTicket):
        deliver(graph, old, "yes")
    # Nothing is asked until the run goes on.
    assert waiting(graph, config) == ()
    graph.invoke(None, config)
    (new,) = waiting(graph, config)
    assert deliver(graph, new, "yes") == {"log": ["edited", "ask=yes", "after="]}


@SOME
@pytest.mark.parametrize("shape", [one_node, one_node_of_a_subgraph])
def test_a_record_that_was_lost_makes_no_old_ticket_good(
    team: Team, journal: Journal, shape: Any
) -> None:
    """Before LangGraph 1.2.20 only the record counts the questions of a subgraph."""
    graph, config = team.worker().compile(shape(journal)), team.thread()
    graph.invoke({}, config)
    (refund,) = waiting(graph, config)
    deliver(graph, refund, "yes")
    binding = graph.worker.saver._remit
    binding.store.delete(binding.key(config["configurable"]["thread_id"]))

    with pytest.raises(StaleTicket):
        deliver(graph, refund, "yes")
    assert journal.count("pay!") == 0
    (wire,) = waiting(graph, config)
    assert wire.value == "wire $10,000?"
    assert isinstance(deliver(graph, wire, "no"), dict)
    assert journal.count("pay!") == 1


@SOME
def test_an_older_checkpoint_does_not_make_a_ticket_good(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(two_nodes(journal)), team.thread()
    graph.invoke({}, config)
    (refund,) = waiting(graph, config)
    then = graph.state(config).config["configurable"]["checkpoint_id"]
    graph.invoke({}, config)

    with pytest.raises(StaleTicket):
        deliver(graph, refund, "yes", checkpoint_id=then)
    with pytest.raises(StaleTicket):
        graph.invoke(None, on(config, checkpoint_id=then, remit_ticket=str(refund)))
    assert journal.count("refund!") == 0


@pytest.mark.parametrize("bare", [False, True])
def test_parallel_questions_are_answered_by_their_tickets(
    team: Team, journal: Journal, bare: bool
) -> None:
    """A bare answer with a ticket is for that question alone."""
    builder = beside(does(journal, "join"), a=asks(journal, "a", "a?"), b=asks(journal, "b", "b?"))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    found = {ticket.value: ticket for ticket in waiting(first, config)}
    assert sorted(found) == ["a?", "b?"]

    def answer(graph: Graph, ticket: Ticket, value: str) -> Any:
        given = Command(resume=value) if bare else ticket.command(value)
        return graph.invoke(given, ticket.config)

    answer(first, found["b?"], "B")
    assert (journal.count("a!"), journal.count("b!")) == (0, 1)
    assert waiting(second, config) == (found["a?"],)
    with pytest.raises(AlreadyConsumed):
        answer(second, found["b?"], "B")
    assert sorted(answer(second, found["a?"], "A")["log"]) == ["a=A", "b=B", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "join")] == [1, 1, 1]


@SOME
def test_while_one_question_is_served_the_other_waits(
    team: Team, journal: Journal, hold: Hold
) -> None:
    builder = beside(
        does(journal, "join"), a=asks(journal, "a", "a?", then=hold), b=asks(journal, "b", "b?")
    )
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    a, b = sorted(waiting(first, config), key=lambda ticket: str(ticket.value))
    winner = Background(lambda: deliver(first, a, "A"))
    hold.reached()

    assert waiting(second, config) == (b,)
    refused = outcome(lambda: deliver(second, b, "B"))
    assert isinstance(refused, InProgress)
    assert refused.same_answer is None
    again = outcome(lambda: deliver(second, a, "Z"))
    assert isinstance(again, InProgress)
    assert again.same_answer is False
    hold.open()
    assert isinstance(winner.result(), dict)
    assert sorted(deliver(second, b, "B")["log"]) == ["a=A", "b=B", "join="]


@SOME
def test_in_progress_says_whether_the_answer_is_the_same(
    team: Team, journal: Journal, hold: Hold
) -> None:
    first, second = (team.worker().compile(approval(journal, hold)) for _ in range(2))
    config = team.thread()
    asked = first.invoke({}, config)["__interrupt__"][0]
    winner = Background(lambda: first.invoke(Command(resume="yes"), config))
    hold.reached()

    given: list[tuple[Any, bool | None]] = [
        (Command(resume="yes"), True),
        (Command(resume="no"), False),
        (Command(resume={asked.id: "yes"}), True),
        (Command(resume={asked.id: "no"}), False),
        (Command(resume={"0" * 32: "yes"}), None),
        (None, None),
    ]
    for answer, same in given:
        with pytest.raises(InProgress) as refused:
            second.invoke(answer, config)
        assert refused.value.same_answer is same
    hold.open()
    assert isinstance(winner.result(), dict)


@SOME
def test_a_redelivered_message_says_whether_the_answer_is_the_same(
    team: Team, journal: Journal
) -> None:
    """Though another question waits by now."""
    graph, config = team.worker().compile(two_nodes(journal)), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), on(config, remit_delivery="m"))

    for answer, same in (("yes", True), ("no", False)):
        with pytest.raises(AlreadyConsumed) as refused:
            graph.invoke(Command(resume=answer), on(config, remit_delivery="m"))
        assert refused.value.same_answer is same
    assert journal.count("pay!") == 0
