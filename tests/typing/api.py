"""A user's view of the API, never run: mypy and pyright must find what is asserted here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from pydantic_graph.persistence.file import FileStatePersistence
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import assert_never, assert_type

from remit_gates import (
    ActiveClaim,
    AlreadyConsumed,
    AsyncGate,
    Attempt,
    Claim,
    Consumption,
    Event,
    Gate,
    InProgress,
    Intent,
    Outcome,
    OutcomeUnknown,
    Policy,
    Reason,
    RemitError,
    ResumeRefused,
    RunKey,
    StoreUnavailable,
    UsageError,
    current_claim,
    history,
    observed,
    open_store,
    release,
    set_hooks,
)
from remit_gates.http import (
    Problem,
    add_handlers,
    idempotency_key,
    optional_idempotency_key,
    problem,
    response,
)
from remit_gates.http.slack import Slack, acknowledge
from remit_gates.langgraph import Ticket, atickets, tickets
from remit_gates.pydantic_graph import ConsumeOnce
from remit_gates.pydantic_graph import gate as graph_gate
from remit_gates.pydantic_graph import release as graph_release
from remit_gates.stores import AsyncStore, Entry, Store


def policies() -> None:
    policy = Policy(on_conflict="wait", wait_timeout=5, answers="bound")
    assert_type(policy.lease, float)
    Policy(on_conflict="queue")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    Policy(30.0)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    policy.lease = 1.0  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def refusals(error: ResumeRefused) -> float | None:
    assert_type(error.run, RunKey)
    assert_type(error.pauses, tuple[str, ...])
    assert_type(error.claim, Claim | None)
    assert_type(error.consumption, Consumption | None)
    assert_type(error.http_status, int)
    assert_type(error.definite, bool)
    if isinstance(error, InProgress):
        assert_type(error.same_answer, bool | None)
    if isinstance(error, AlreadyConsumed):
        assert_type(error.failed, bool)
        assert_type(error.running, bool)
        assert_type(error.same_answer, bool | None)
        assert_type(error.outcome, Outcome | None)
    return error.retry_after


def every_reason(error: ResumeRefused) -> str:
    """The reasons are closed: a match over all of them is complete."""
    match error.reason:
        case Reason.IN_PROGRESS:
            return "wait"
        case Reason.CONSUMED | Reason.FAILED:
            return "look at the outcome"
        case Reason.ABANDONED:
            return "ask a person"
        case Reason.STALE_TICKET | Reason.NOT_PARKED | Reason.SUPERSEDED:
            return "look at the run"
        case _:
            assert_never(error.reason)


def one_base(error: RemitError) -> None:
    bases: list[type[RemitError]] = [InProgress, OutcomeUnknown, StoreUnavailable, UsageError]
    assert_type(error.definite, bool)
    assert_type(StoreUnavailable.http_status, int)
    assert bases


def gates(store: Store, pay: Callable[[str], None]) -> None:
    gate = Gate("sqlite:///claims.db", policy=Policy(on_failure="retry"), namespace="shop")
    with gate.passage("order-17", "approve", {"ok": True}, delivery="msg-1", actor="ann") as claim:
        assert_type(claim, ActiveClaim)
        assert_type(claim.token, int)
        assert_type(claim.pauses, tuple[str, ...])
        pay(claim.idempotency_key)
    with gate.passage("order-17", intent=Intent.START):
        assert_type(current_claim(), ActiveClaim | None)
    gate.passage("order-17", "approve", True, "ann")  # type: ignore[call-arg,arg-type] # pyright: ignore[reportCallIssue]
    assert_type(gate.release("order-17", reason="asked again"), bool)
    assert_type(release(store, "order-17", framework="gate"), bool)
    assert_type(gate.history("order-17"), tuple[Attempt, ...])
    assert_type(history(store, "order-17", framework="gate")[0].answer, str | None)


async def async_gates(pay: Callable[[str], None]) -> None:
    gate = AsyncGate("sqlite:///claims.db")
    async with gate.passage(run="order-17", pause="approve", answer="yes") as claim:
        assert_type(claim, ActiveClaim)
        pay(claim.idempotency_key)
    assert_type(await gate.release("order-17"), bool)
    assert_type(await gate.history("order-17"), tuple[Attempt, ...])


def http(error: RemitError) -> None:
    app = Starlette()
    add_handlers(app)
    assert_type(idempotency_key(Request({"type": "http"})), str)
    assert_type(optional_idempotency_key(Request({"type": "http"})), str | None)
    assert_type(problem(error, "msg-1"), Problem)
    assert_type(problem(error).body, dict[str, Any])
    assert_type(response(error), Response)
    Slack(["new", "old"], clock=lambda: 0.0)
    acknowledge(lambda: None, tell=lambda told: told.detail)
    problem(ValueError())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def events() -> None:
    def hook(event: Event) -> None:
        assert_type(event.claim, Claim | None)
        assert_type(event.reason, Reason | None)
        assert_type(event.seconds, float | None)

    set_hooks(hook)
    set_hooks("hook")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    with observed(hook):
        assert_type(open_store("sqlite:///claims.db"), Store)


async def bound(graph: object, config: dict[str, object]) -> None:
    assert_type(tickets(graph, config), tuple[Ticket, ...])
    (ticket,) = await atickets(graph, config)
    assert_type(ticket, Ticket)
    assert_type(ticket.interrupt_id, str | None)
    assert_type(ticket.thread, str | None)
    assert_type(Ticket.parse(str(ticket), secret=["new", b"old"]).pause, str)
    Ticket.parse(str(ticket), "key")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


async def graphs(persistence: FileStatePersistence[int, str]) -> None:
    gated = graph_gate(persistence, policy=Policy(), run="order-17", pause="p", actor="ann")
    assert_type(gated, FileStatePersistence[int, str])
    assert_type(await graph_release(gated, actor="ann"), bool)


def agents(store: Store) -> None:
    ConsumeOnce(store, scope_key="chat", delivery="m")
    ConsumeOnce("sqlite:///claims.db", scope_key=lambda ctx: str(ctx.run_id), receipts=False)
    ConsumeOnce()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def stores(store: Store, run: RunKey) -> None:
    snapshot = store.read(run)
    assert_type(snapshot.version, int | None)
    assert_type(store.swap(run, snapshot.version, snapshot.record, None), int | None)
    assert_type(store.renew(run, 1, 30.0), bool)
    assert_type(store.scan("langgraph"), Iterator[Entry])
    assert_type(store.scan(after=run, claimed=True, idle=600.0), Iterator[Entry])
    assert_type(store.renewer(), Store)


async def async_stores(store: AsyncStore, run: RunKey) -> None:
    assert_type((await store.read(run)).lease_left, float | None)
    assert_type(store.scan(), AsyncIterator[Entry])
    assert_type(store.scan(after=run, claimed=False, idle=600.0), AsyncIterator[Entry])
    assert_type(store.renewer(), Store)
