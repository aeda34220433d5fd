"""What a ticket goes together with, what it costs, and what it shows to whom."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import Policy
from remit_gates.errors import (
    AlreadyConsumed,
    NotParked,
    StaleTicket,
    UsageError,
)
from remit_gates.langgraph import Ticket, gate, tickets
from tests.adapters.graphs import Journal, approval
from tests.adapters.ticketing import (
    SOME,
    deliver,
    one_node,
    two_nodes,
    waiting,
)
from tests.adapters.workers import Graph, Team, on


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
