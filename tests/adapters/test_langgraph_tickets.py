"""A ticket answers the question that a person was shown, or none at all."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import Policy, current_claim
from remit_gates.errors import (
    Abandoned,
    AlreadyConsumed,
    InProgress,
    NotParked,
    StaleTicket,
    UsageError,
)
from remit_gates.langgraph import Ticket, atickets, gate, tickets
from tests.adapters.graphs import Hold, Journal, approval, asks, beside, chain, does
from tests.adapters.racing import Background, outcome, race
from tests.adapters.test_langgraph_failures import Boom, failing
from tests.adapters.workers import Graph, Team, on
from tests.waiting import until


SOME = pytest.mark.kinds(
    "memory", "sqlite", "sqlite-async", "postgres-pool", "postgres-async", "redis", "redis-async"
)


def waiting(graph: Graph, config: Any) -> tuple[Ticket, ...]:
    """The tickets of what waits, in the colour of the graph's worker."""
    if graph.worker.loop is None:
        return tickets(graph.compiled, config)
    return graph.worker.loop.run(atickets(graph.compiled, config))


def deliver(graph: Graph, ticket: Ticket, *answer: Any, **options: Any) -> Any:
    """An answer with a ticket that was read from its text, as a web handler does it."""
    read = Ticket.parse(str(ticket))
    config = read.config
    config["configurable"].update(options)
    return graph.invoke(read.command(*answer), config)


def one_node(journal: Journal) -> Any:
    return chain(pay=asks(journal, "pay", "refund $10?", "wire $10,000?"))


def two_nodes(journal: Journal) -> Any:
    return chain(
        refund=asks(journal, "refund", "refund $10?"), pay=asks(journal, "pay", "wire $10,000?")
    )


def one_subgraph(journal: Journal) -> Any:
    inner = chain(
        refund=asks(journal, "refund", "refund $10?"), pay=asks(journal, "pay", "wire $10,000?")
    )
    return chain(outer=inner.compile(), after=does(journal, "after"))


def one_node_of_a_subgraph(journal: Journal) -> Any:
    return chain(outer=one_node(journal).compile())


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


# Failure.


@SOME
def test_what_failed_goes_on_and_its_ticket_is_spent(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after", failing()))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket, "yes", remit_delivery="m")

    assert waiting(graph, config) == ()
    for answer in ("yes", "no"):
        if answer == "no":
            with pytest.raises(AlreadyConsumed) as refused:
                deliver(graph, ticket, answer)
            assert refused.value.failed
    assert deliver(graph, ticket, "yes", remit_delivery="m") == {"log": ["ask=yes", "after="]}
    with pytest.raises(AlreadyConsumed):
        deliver(graph, ticket, "yes", remit_delivery="m")
    assert journal.count("ask!") == 1


@SOME
def test_none_with_the_ticket_goes_on_with_what_failed(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after", failing()))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket, "yes")

    assert graph.invoke(None, ticket.config) == {"log": ["ask=yes", "after="]}
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(None, ticket.config)
    assert refused.value.same_answer is None


@SOME
@pytest.mark.parametrize("how", ["release", "retry"])
def test_what_may_be_answered_again_has_its_ticket(team: Team, journal: Journal, how: str) -> None:
    policy = Policy(on_failure="retry" if how == "retry" else "hold")
    graph = team.worker(policy=policy).compile(
        chain(ask=asks(journal, "ask", "sure?", then=failing()))
    )
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket, "yes")

    if how == "release":
        assert waiting(graph, config) == ()
        assert team.release(graph, config)
    assert waiting(graph, config) == (ticket,)
    assert deliver(graph, ticket, "no") == {"log": ["ask=no"]}
    assert waiting(graph, config) == ()


@SOME
@pytest.mark.parametrize("at_breakpoint", [False, True])
def test_a_ticket_does_not_take_over_from_a_holder_that_died(
    team: Team, journal: Journal, at_breakpoint: bool
) -> None:
    """Not by itself: somebody decides, and then it is good again."""
    claims: list[Any] = []

    def dies_once() -> None:
        claims.append(current_claim())
        if len(claims) == 1:
            # As far as its record can tell, this was the end of its process.
            claims[0]._left = True
            raise Boom

    questions = [] if at_breakpoint else ["sure?"]
    builder = chain(ask=asks(journal, "ask", *questions, then=dies_once))
    graph = team.worker(policy=Policy(lease=0.05)).compile(
        builder, interrupt_before=["ask"] if at_breakpoint else []
    )
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    answer = () if at_breakpoint else ("yes",)
    with pytest.raises(Boom):
        deliver(graph, ticket, *answer)

    until(lambda: not isinstance(outcome(lambda: deliver(graph, ticket, *answer)), InProgress))
    with pytest.raises(Abandoned):
        deliver(graph, ticket, *answer)
    assert waiting(graph, config) == ()
    assert len(claims) == 1
    assert team.release(graph, config)
    assert waiting(graph, config) == (ticket,)
    assert "__interrupt__" not in deliver(graph, ticket, *answer)
    assert claims[1].idempotency_key == claims[0].idempotency_key


# Static breakpoints.


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


# What a ticket must go together with.


@pytest.mark.kinds("memory", "memory-async")
def test_a_ticket_goes_with_its_own_thread_and_answer(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    other = team.thread()
    graph.invoke({}, other)
    elsewhere = team.worker(namespace="other").compile(approval(journal))
    here = {"remit_ticket": str(ticket)}

    wrong: list[tuple[Graph, Any, Any, str]] = [
        (graph, ticket.command("yes"), on(other, **here), "another thread"),
        (elsewhere, ticket.command("yes"), ticket.config, "another thread or namespace"),
        (graph, {}, ticket.config, "not with new input"),
        (graph, Command(resume={"0" * 32: "yes"}), ticket.config, "names other interrupts"),
        (graph, ticket.command("yes"), on(config, **here, remit_fork=True), "remit_fork"),
        (graph, ticket.command("yes"), on(config, remit_ticket="forged"), "not a ticket"),
        (graph, ticket.command("yes"), on(config, remit_ticket=7), "not a ticket"),
    ]
    for called, given, where, words in wrong:
        with pytest.raises(UsageError, match=words) as refused:
            called.invoke(given, where)
        assert str(ticket) not in str(refused.value)
        assert ticket.pause not in str(refused.value)

    assert journal.lines == ["ask", "ask"]
    given = on(config, remit_ticket=ticket)
    assert graph.invoke(ticket.command("yes"), given)["log"] == ["ask=yes", "after="]


@SOME
def test_a_ticket_binds_where_answers_must_be_bound(team: Team, journal: Journal) -> None:
    graph = team.worker(policy=Policy(answers="bound")).compile(one_node(journal))
    config = team.thread()
    graph.invoke({}, config)
    for answer in ("a", "b"):
        (ticket,) = waiting(graph, config)
        graph.invoke(Command(resume=answer), ticket.config)
    assert graph.state(config).values == {"log": ["pay=a+b"]}


@SOME
def test_looking_for_tickets_changes_nothing(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    binding = graph.worker.saver._remit
    key = binding.key(config["configurable"]["thread_id"])
    before = team.pending(graph, config), binding.store.read(key).record

    (one,), (two,) = waiting(graph, config), waiting(graph, config)

    assert (str(one), one, hash(one)) == (str(two), two, hash(two))
    assert (team.pending(graph, config), binding.store.read(key).record) == before
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["ask=yes", "after="]}


@pytest.mark.kinds("memory", "sqlite", "foreign")
def test_what_tickets_cost(team: Team, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reads of the record and one of the checkpoint; a delivery with one costs no more
    than a delivery without."""
    graph = team.worker().compile(approval(journal))
    saver = graph.worker.saver
    calls: list[str] = []

    def counted(target: Any, name: str) -> None:
        method = getattr(target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return method(*args, **kwargs)

        monkeypatch.setattr(target, name, call)

    for name in ("read", "swap"):
        counted(saver._remit.store, name)
    counted(saver, "get_tuple")
    found = []
    for bound in (True, False):
        config = team.thread()
        graph.invoke({}, config)
        calls.clear()
        (ticket,) = tickets(graph.compiled, config)
        assert sorted(calls) == ["get_tuple", "read", "read"]
        calls.clear()
        graph.invoke(ticket.command("yes"), ticket.config if bound else config)
        found.append([*calls])
    assert found[0] == found[1] == ["get_tuple", "read", "swap", "swap"]


@pytest.mark.kinds("memory", "sqlite-async")
def test_a_thread_id_may_be_long(team: Team, journal: Journal) -> None:
    graph = team.worker().compile(approval(journal))
    name = "orders/2026/" + "ä" * 200
    graph.invoke({}, on(name))
    (ticket,) = waiting(graph, on(name))
    assert len(str(ticket)) < 200
    assert (ticket.thread, ticket.config["configurable"]["thread_id"]) == (name, name)

    read = Ticket.parse(str(ticket))
    assert (read.thread, read.pause) == (None, ticket.pause)
    with pytest.raises(UsageError, match="thread="):
        _ = read.config
    with pytest.raises(UsageError, match="another thread"):
        Ticket.parse(str(ticket), thread=name + "b")
    with pytest.raises(UsageError, match="another thread"):
        graph.invoke(read.command("yes"), on(name + "b", remit_ticket=str(ticket)))
    read = Ticket.parse(str(ticket), thread=name)
    assert graph.invoke(read.command("yes"), read.config) == {"log": ["ask=yes", "after="]}


@pytest.mark.kinds("memory", "memory-async")
def test_keys_are_changed_without_losing_a_ticket(team: Team, journal: Journal) -> None:
    builder = approval(journal)
    old, both, new, none = (
        team.worker(secret=secret).compile(builder)
        for secret in ("old", ["new", b"old"], "new", None)
    )
    config = team.thread()
    old.invoke({}, config)
    (signed,) = waiting(old, config)
    (renewed,) = waiting(both, config)
    (plain,) = waiting(none, config)
    assert len({str(signed), str(renewed), str(plain)}) == 3

    for graph, ticket in ((new, signed), (old, renewed), (none, signed), (both, plain)):
        with pytest.raises(UsageError, match="not a ticket"):
            graph.invoke(ticket.command("yes"), ticket.config)
    assert journal.lines == ["ask"]
    assert both.invoke(signed.command("yes"), signed.config)["log"] == ["ask=yes", "after="]
    with pytest.raises(AlreadyConsumed):
        new.invoke(renewed.command("yes"), renewed.config)


@pytest.mark.kinds("memory")
def test_the_rest_of_a_config_goes_into_the_tickets_config(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    here = graph.state(config).config
    given = {"recursion_limit": 7, "configurable": {**here["configurable"], "mine": 1}}

    (ticket,) = waiting(graph, given)

    assert ticket.config == {
        "recursion_limit": 7,
        "configurable": {**config["configurable"], "mine": 1, "remit_ticket": str(ticket)},
    }
    assert Ticket.parse(str(ticket)).config == on(config, remit_ticket=str(ticket))
    assert pickle.loads(pickle.dumps(ticket)).config == ticket.config
    read = Ticket.parse(str(ticket))
    assert not hasattr(read, "value")
    assert (read, read.pause, read.interrupt_id) == (ticket, ticket.pause, ticket.interrupt_id)
    assert (read.thread, read.namespace) == (config["configurable"]["thread_id"], "")


@pytest.mark.kinds("memory")
def test_a_ticket_shows_in_no_checkpoint_and_no_metadata(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(two_nodes(journal)), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    graph.invoke(ticket.command("yes"), ticket.config)

    kept = [(state.config, state.metadata, state.values) for state in graph.history(config)]
    assert len(kept) >= 3
    assert str(ticket) not in repr(kept)
    assert str(ticket) not in repr(team.pending(graph, config))


def test_only_a_gated_graph_has_tickets(journal: Journal) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    with pytest.raises(UsageError, match="gated saver"):
        tickets(approval(journal).compile(checkpointer=InMemorySaver()), on("t"))
    saver = gate(InMemorySaver())
    with pytest.raises(UsageError, match="thread_id"):
        tickets(approval(journal).compile(checkpointer=saver), {"configurable": {}})
    with pytest.raises(UsageError, match="secret="):
        gate(InMemorySaver(), secret="")
    assert tickets(saver, on("t")) == ()


@pytest.mark.kinds("memory")
def test_an_unknown_thread_has_no_tickets_and_takes_none(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    assert waiting(graph, config) == ()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    graph.worker.saver.delete_thread(config["configurable"]["thread_id"])

    with pytest.raises(StaleTicket):
        deliver(graph, ticket, "yes")
    with pytest.raises(NotParked):
        graph.invoke(Command(resume="yes"), config)
    assert journal.lines == ["ask"]
