"""Real applications of both kinds, whose endpoints deliver to a real gated graph."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from remit_gates import StoreUnavailable, UsageError
from remit_gates.http import (
    add_handlers,
    idempotency_key,
    optional_idempotency_key,
    problem,
    response,
)
from tests.services.desks import Desk


class Body(BaseModel):
    answer: str


def fastapi_app(desk: Desk) -> FastAPI:
    app = FastAPI()
    add_handlers(app)

    @app.post("/orders/{run}/answer")
    def required(run: str, body: Body, key: Annotated[str, Depends(idempotency_key)]) -> Any:
        return desk.deliver(run, body.answer, key)

    @app.post("/orders/{run}/maybe")
    def optional(
        run: str, body: Body, key: Annotated[str | None, Depends(optional_idempotency_key)]
    ) -> Any:
        return desk.deliver(run, body.answer, key)

    return app


def starlette_app(desk: Desk) -> Starlette:
    async def deliver(request: Request, reader: Callable[[Request], str | None]) -> JSONResponse:
        body = await request.json()
        run = request.path_params["run"]
        return JSONResponse(desk.deliver(run, body["answer"], reader(request)))

    async def required(request: Request) -> JSONResponse:
        return await deliver(request, idempotency_key)

    async def optional(request: Request) -> JSONResponse:
        return await deliver(request, optional_idempotency_key)

    routes = [
        Route("/orders/{run}/answer", required, methods=["POST"]),
        Route("/orders/{run}/maybe", optional, methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    add_handlers(app)
    return app


def mounted_app(desk: Desk) -> Starlette:
    """An application in another, behind a middleware that runs it in a task of its own."""

    async def through(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    outside = [Middleware(BaseHTTPMiddleware, dispatch=through)]
    return Starlette(routes=[Mount("/", fastapi_app(desk))], middleware=outside)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(params=[fastapi_app, starlette_app, mounted_app])
def client(request: pytest.FixtureRequest, desk: Desk) -> Iterator[TestClient]:
    with TestClient(request.param(desk), raise_server_exceptions=False) as client:
        yield client


def post(
    client: TestClient, run: str, answer: str, key: str | None = None, path: str = "answer"
) -> Any:
    headers = {} if key is None else {"Idempotency-Key": f'"{key}"'}
    return client.post(f"/orders/{run}/{path}", json={"answer": answer}, headers=headers)


PROBLEM = "application/problem+json"


def test_the_first_is_served_as_if_there_were_no_gate(desk: Desk, client: TestClient) -> None:
    first = post(client, desk.ask(), "yes", "key-1")

    assert (first.status_code, first.json()) == (200, {"waits": True})
    assert "idempotent-replayed" not in first.headers


def test_the_same_key_and_answer_gets_the_recorded_outcome(desk: Desk, client: TestClient) -> None:
    """The run asks the next question by then, which the answer must not reach."""
    post(client, desk.ask(), "yes", "key-1")
    again = post(client, "order-17", "yes", "key-1")

    assert again.status_code == 200
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-type"] == "application/json"
    assert again.json()["outcome"]["state"] == "parked"
    assert desk.paid == ["yes"]
    assert desk.graph.get_state({"configurable": {"thread_id": "order-17"}}).next == ("wire",)


def test_the_same_key_and_another_answer_is_422(desk: Desk, client: TestClient) -> None:
    post(client, desk.ask(), "yes", "key-1")
    other = post(client, "order-17", "no", "key-1")

    assert (other.status_code, other.headers["content-type"]) == (422, PROBLEM)
    assert other.json()["type"] == "urn:remit-gates:problem:idempotency-key-reused"
    assert desk.paid == ["yes"]


def test_both_hold_when_the_run_is_over(desk: Desk, client: TestClient) -> None:
    post(client, desk.ask(), "yes", "key-1")
    post(client, "order-17", "sure", "key-2")

    same, other = post(client, "order-17", "sure", "key-2"), post(client, "order-17", "x", "key-2")
    early = post(client, "order-17", "yes", "key-1")

    assert (same.status_code, same.json()["outcome"]["state"]) == (200, "finished")
    assert (early.status_code, early.json()["outcome"]["state"]) == (200, "parked")
    assert other.status_code == 422


def test_another_answer_under_the_key_of_one_that_failed_is_422(
    desk: Desk, client: TestClient
) -> None:
    desk.ask()
    assert post(client, "order-17", "break", "key-1").status_code == 500

    other = post(client, "order-17", "yes", "key-1")
    stranger = post(client, "order-17", "yes", "key-2")

    assert other.status_code == 422
    assert (stranger.status_code, stranger.json()["reason"]) == (409, "failed")
    assert "secret" not in stranger.text
    assert desk.paid == []


def test_without_a_key_that_is_required_nothing_is_done(desk: Desk, client: TestClient) -> None:
    missing = post(client, desk.ask(), "yes")

    assert (missing.status_code, missing.headers["content-type"]) == (400, PROBLEM)
    assert missing.json()["type"] == "urn:remit-gates:problem:idempotency-key-missing"
    assert desk.paid == []


def test_where_the_key_may_be_missing_a_duplicate_is_told(desk: Desk, client: TestClient) -> None:
    desk.ask()
    for answer in ("yes", "sure"):
        assert post(client, "order-17", answer, path="maybe").status_code == 200

    same = post(client, "order-17", "sure", path="maybe")

    assert (same.status_code, same.headers["content-type"]) == (409, PROBLEM)
    assert same.json()["same_answer"] is True


def test_while_it_is_being_handled_others_are_told_when_to_come_back(
    desk: Desk, client: TestClient
) -> None:
    desk.ask()
    desk.may_end.clear()
    with ThreadPoolExecutor() as pool:
        # A client of its own: Starlette's applications above may block their event loop.
        app = fastapi_app(desk)
        with TestClient(app) as other:
            first = pool.submit(post, other, "order-17", "yes", "key-1")
            assert desk.paying.wait(20)
            again = post(client, "order-17", "yes", "key-1")
            desk.may_end.set()
            assert first.result().status_code == 200

    assert (again.status_code, again.json()["reason"]) == (409, "in_progress")
    assert 1 <= int(again.headers["retry-after"]) <= 30
    assert desk.paid == ["yes"]


def test_an_unknown_run_is_told(desk: Desk, client: TestClient) -> None:
    unknown = post(client, "nowhere", "yes", "key-1")

    assert (unknown.status_code, unknown.json()["reason"]) == (409, "not_parked")


# Errors that are nobody's fault outside.


def raising(error: Exception) -> Starlette:
    async def endpoint(request: Request) -> JSONResponse:
        raise error

    async def early(socket: WebSocket) -> None:
        raise error

    async def late(socket: WebSocket) -> None:
        await socket.accept()
        raise error

    async def closed(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close(4000)
        raise error

    routes = [
        Route("/", endpoint),
        WebSocketRoute("/early", early),
        WebSocketRoute("/late", late),
        WebSocketRoute("/closed", closed),
    ]
    app = Starlette(routes=routes)
    add_handlers(app)
    return app


def test_a_fault_of_the_service_is_in_its_log_and_not_in_the_body(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with TestClient(raising(UsageError("mend line 3"))) as client:
        told = client.get("/")

    assert (told.status_code, told.headers["content-type"]) == (500, PROBLEM)
    assert "line 3" not in told.text
    assert "Traceback" not in told.text
    [line] = [entry for entry in caplog.records if entry.name == "remit_gates.http"]
    assert (line.levelno, line.exc_info is not None) == (logging.ERROR, True)
    assert "line 3" in line.getMessage()


def test_a_store_that_is_away_is_503_with_a_time_to_come_back() -> None:
    with TestClient(raising(StoreUnavailable("down"))) as client:
        told = client.get("/")

    assert (told.status_code, told.headers["retry-after"]) == (503, "5")


def test_what_is_no_error_of_ours_goes_its_way() -> None:
    with TestClient(raising(KeyError("mine"))) as client, pytest.raises(KeyError):
        client.get("/")


def test_a_socket_that_is_not_open_yet_is_denied_with_the_problem() -> None:
    client = TestClient(raising(StoreUnavailable("down")))

    with pytest.raises(WebSocketDisconnect) as denied, client.websocket_connect("/early"):
        pass

    answer = denied.value
    assert getattr(answer, "status_code", None) == 503


@pytest.mark.parametrize(
    ("error", "code"), [(StoreUnavailable("down"), 1013), (UsageError("mend"), 1011)]
)
def test_an_open_socket_is_closed(error: Exception, code: int) -> None:
    client = TestClient(raising(error))

    with client.websocket_connect("/late") as socket, pytest.raises(WebSocketDisconnect) as end:
        socket.receive_text()

    assert end.value.code == code


def test_a_closed_socket_is_left_alone() -> None:
    client = TestClient(raising(UsageError("mend")))

    with client.websocket_connect("/closed") as socket, pytest.raises(WebSocketDisconnect) as end:
        socket.receive_text()

    assert end.value.code == 4000


def test_handlers_that_would_never_be_asked_are_not_added() -> None:
    app = Starlette()
    with TestClient(app) as client:
        client.get("/")

    with pytest.raises(UsageError, match="after the application's first request"):
        add_handlers(app)


def test_who_catches_an_error_himself_gets_the_same_response() -> None:
    error = StoreUnavailable("down")

    assert response(error).status_code == problem(error).status == 503
    assert response(error).headers["content-type"] == PROBLEM
