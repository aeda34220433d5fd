"""The approval desk: a page for people, and a webhook for programs.

Started by `python -m examples.approval_desk`, which sets what it reads of the environment.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, FastAPI, Form, Query, Request, Response
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel, Field

from examples.approval_desk.desk import Desk, opened
from examples.approval_desk.words import happened, trouble
from remit_gates import RemitError, UsageError
from remit_gates.http import InvalidRequest, add_handlers, idempotency_key, problem
from remit_gates.langgraph import Ticket


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Hold the worker's connections while it serves."""
    environ = os.environ
    with opened(
        environ["REMIT_POSTGRES_URL"],
        environ["DESK_SECRET"],
        worker=os.getpid(),
        slow=float(environ.get("DESK_SLOW", "0")),
    ) as desk:
        app.state.desk = desk
        yield


app = FastAPI(title="Approval desk", lifespan=lifespan)
add_handlers(app)
pages = Jinja2Templates(Path(__file__).parent / "templates")

GUARDED: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "Cache-Control": "no-store",
    "X-Worker": str(os.getpid()),
}

Answer = Literal["approve", "reject"]
Name = Annotated[str, Form(min_length=1, max_length=40)]


@app.middleware("http")
async def guarded(request: Request, call_next: Any) -> Any:
    """Say which worker answered, and have the browser trust nothing else."""
    answer = await call_next(request)
    answer.headers.update(GUARDED)
    return answer


def desk(request: Request) -> Desk:
    """The desk of this worker."""
    found: Desk = request.app.state.desk
    return found


TheDesk = Annotated[Desk, Depends(desk)]


def read(desk: Desk, text: str) -> Ticket:
    """The ticket that a request carries; that it is none is the sender's fault."""
    try:
        return Ticket.parse(text, secret=desk.secret)
    except UsageError as error:
        raise InvalidRequest(str(error), name="ticket-invalid") from None


def page(request: Request, desk: Desk, by: str, told: Any = None, status: int = 200) -> Response:
    """The page, with what happened at its top."""
    shown = {
        "by": by,
        "told": told,
        "cases": list(desk.cases()),
        "ledger": desk.ledger(),
        "worker": os.getpid(),
    }
    return pages.TemplateResponse(request, "page.html", shown, status_code=status)


@app.get("/")
def look(
    request: Request, desk: TheDesk, by: Annotated[str, Query(alias="as", max_length=40)] = "ann"
) -> Response:
    """What waits, and what was done."""
    return page(request, desk, by)


@app.post("/answers")
def answer(
    request: Request,
    desk: TheDesk,
    ticket: Annotated[str, Form()],
    answer: Annotated[Answer, Form()],
    by: Name,
) -> Response:
    """A person pressed a button. The page comes back with the status that it has come to;
    to load it again sends the answer again, which the gate makes harmless."""
    try:
        asked = read(desk, ticket)
        state = desk.deliver(desk.for_people, asked, answer, by)
    except RemitError as error:
        told = trouble(error, answer, by)
        return page(request, desk, by, told, problem(error).status)
    return page(request, desk, by, happened(state["decisions"], answer, by))


class Sent(BaseModel):
    """What a program sends."""

    ticket: str
    answer: Answer
    by: str = Field("webhook", min_length=1, max_length=40)


@app.post("/webhook")
def webhook(
    desk: TheDesk, sent: Sent, key: Annotated[str, Depends(idempotency_key)]
) -> dict[str, Any]:
    """A program sends an answer, and sends it again until it hears that it arrived."""
    ticket = read(desk, sent.ticket)
    state = desk.deliver(desk.for_programs, ticket, sent.answer, sent.by, key)
    return {"decisions": state["decisions"]}


class Opened(BaseModel):
    """A case to open."""

    customer: str = Field(min_length=1, max_length=80)
    steps: list[Annotated[str, Field(min_length=1, max_length=80)]] = Field(
        min_length=1, max_length=5
    )


@app.post("/cases", status_code=201)
def open_case(desk: TheDesk, case: Opened) -> dict[str, str]:
    """Open a case."""
    return {"id": desk.open(case.customer, case.steps)}


@app.get("/cases")
def list_cases(desk: TheDesk, newest: Annotated[int, Query(ge=1, le=500)] = 12) -> Any:
    """What a program needs to answer: a ticket for each question that waits."""
    return [
        {
            "id": case.id,
            "customer": case.customer,
            "decisions": case.decisions,
            "waits": [{"asks": each.value["step"], "ticket": str(each)} for each in case.waits],
        }
        for case in desk.cases(newest)
    ]


@app.get("/ledger")
def show_ledger(desk: TheDesk, newest: Annotated[int, Query(ge=1, le=1000)] = 12) -> Any:
    """What was done."""
    return desk.ledger(newest)
