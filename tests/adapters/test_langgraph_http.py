"""The ticket case, the double click and the replayed webhook, over HTTP, at two workers, on
every kind of saver."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from remit_gates.http import add_handlers, idempotency_key
from remit_gates.langgraph import Ticket, atickets, tickets
from tests.adapters.graphs import Hold, Journal, asks, chain, does
from tests.adapters.workers import Graph, Team, on
from tests.waiting import PATIENCE


def service(graph: Graph) -> Starlette:
    """An application of one worker: it takes answers by ticket."""

    def answer(request: Request) -> JSONResponse:
        ticket = Ticket.parse(request.query_params["ticket"])
        config = on(
            ticket.config, remit_ticket=str(ticket), remit_delivery=idempotency_key(request)
        )
        graph.invoke(ticket.command(request.query_params["answer"]), config)
        return JSONResponse({"served": True})

    app = Starlette(routes=[Route("/", answer, methods=["POST"])])
    add_handlers(app)
    return app


class Desk:
    """Two workers of one graph, which asks, pays, and asks again."""

    def __init__(self, team: Team, journal: Journal, hold: Hold) -> None:
        self.hold = hold
        self.config = team.thread()
        graphs = [
            team.worker().compile(
                chain(
                    refund=asks(journal, "refund", "refund $10?"),
                    paid=does(journal, "paid", hold),
                    wire=asks(journal, "wire", "wire $10,000?"),
                    wired=does(journal, "wired"),
                )
            )
            for _ in range(2)
        ]
        graphs[0].invoke({}, self.config)
        self.graph = graphs[0]
        self.clients = [TestClient(service(graph)) for graph in graphs]

    def ticket(self) -> str:
        """The ticket of what waits."""
        compiled, loop = self.graph.compiled, self.graph.worker.loop
        if loop is None:
            [found] = tickets(compiled, self.config)
        else:
            [found] = loop.run(atickets(compiled, self.config))
        return str(found)

    def post(self, worker: int, ticket: str, key: str, answer: str = "yes") -> Any:
        return self.clients[worker].post(
            "/", params={"ticket": ticket, "answer": answer}, headers={"Idempotency-Key": key}
        )


@pytest.fixture
def desk(team: Team, journal: Journal, hold: Hold) -> Iterator[Desk]:
    desk = Desk(team, journal, hold)
    with desk.clients[0], desk.clients[1]:
        yield desk


def test_a_double_click(desk: Desk, journal: Journal) -> None:
    ticket = desk.ticket()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(desk.post, 0, ticket, "click-1")
        desk.hold.reached()
        second = desk.post(1, ticket, "click-2")
        desk.hold.open()
        served = first.result(PATIENCE)

    assert (served.status_code, served.json()) == (200, {"served": True})
    assert (second.status_code, second.json()["reason"]) == (409, "in_progress")
    assert int(second.headers["retry-after"]) >= 1
    assert journal.count("paid!") == 1


def test_a_webhook_that_is_sent_again_to_the_other_worker(desk: Desk, journal: Journal) -> None:
    ticket = desk.ticket()
    desk.hold.open()
    served, again, other = (
        desk.post(worker, ticket, "msg-1", answer)
        for worker, answer in ((0, "yes"), (1, "yes"), (1, "no"))
    )

    assert (served.status_code, "idempotent-replayed" in served.headers) == (200, False)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")
    assert again.json()["outcome"]["state"] == "parked"
    assert other.status_code == 422
    assert journal.count("paid!") == 1


def test_the_refund_s_approval_does_not_wire(desk: Desk, journal: Journal) -> None:
    refund = desk.ticket()
    desk.hold.open()
    desk.post(0, refund, "msg-1")
    wire = desk.ticket()

    late = [desk.post(worker, refund, key) for worker, key in ((0, "msg-1"), (1, "msg-2"))]

    assert [told.status_code for told in late] == [200, 409]
    assert late[1].json()["type"] == "urn:remit-gates:problem:consumed"
    assert journal.count("wired!") == 0
    assert desk.post(1, wire, "msg-3").status_code == 200
    assert (journal.count("paid!"), journal.count("wired!")) == (1, 1)
