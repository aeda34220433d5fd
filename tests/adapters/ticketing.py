"""Tickets, as the tests of them read and deliver them."""

from __future__ import annotations

from typing import Any

import pytest

from remit_gates.langgraph import Ticket, atickets, tickets
from tests.adapters.graphs import Journal, asks, chain, does
from tests.adapters.workers import Graph


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
