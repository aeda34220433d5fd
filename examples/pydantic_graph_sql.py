"""A pydantic-graph persistence on SQL, gated: two workers answer one question.

`SqlPersistence` keeps a run in SQLite or in Postgres. What the gate needs of a persistence is
that a snapshot keeps its id, and that `load_all` gives the whole run, oldest first.

Uses the Postgres that `REMIT_EXAMPLE_URL` names, or a SQLite file.

Prints:

    resumes served: 1
    resumes refused: 1, with HTTP status 409
    refunds sent: 1
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from pydantic import TypeAdapter
from pydantic_graph import BaseNode, End, GraphRunContext
from pydantic_graph.exceptions import GraphNodeStatusError
from pydantic_graph.graph import Graph
from pydantic_graph.persistence import (
    BaseStatePersistence,
    EndSnapshot,
    NodeSnapshot,
    build_snapshot_list_type_adapter,
)

from remit_gates import ResumeRefused, current_claim
from remit_gates.pydantic_graph import gate


class SqlPersistence(BaseStatePersistence[Any, Any]):
    """The snapshots of one run, a row each.

    Args:
        url: `sqlite:///file.db`, or a `postgresql://` URL.
        run: The name of the run.
    """

    def __init__(self, url: str, run: str) -> None:
        self.url = url
        self.run = run
        self._adapter: TypeAdapter[list[Any]] | None = None

    def should_set_types(self) -> bool:
        return self._adapter is None

    def set_types(self, state_type: type[Any], run_end_type: type[Any]) -> None:
        self._adapter = build_snapshot_list_type_adapter(state_type, run_end_type)

    @property
    def _types(self) -> TypeAdapter[list[Any]]:
        if self._adapter is None:
            raise RuntimeError("call set_graph_types(graph) first")
        return self._adapter

    async def setup(self) -> None:
        """Make the table."""
        serial = "INTEGER PRIMARY KEY" if self._sqlite else "BIGSERIAL PRIMARY KEY"
        await self._execute(
            f"CREATE TABLE IF NOT EXISTS snapshots (position {serial}, run TEXT NOT NULL,"
            " id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, body TEXT NOT NULL)"
        )

    async def snapshot_node(self, state: Any, next_node: BaseNode[Any, Any, Any]) -> None:
        await self._insert(NodeSnapshot(state=state, node=next_node), "created")

    async def snapshot_node_if_new(
        self, snapshot_id: str, state: Any, next_node: BaseNode[Any, Any, Any]
    ) -> None:
        await self._insert(NodeSnapshot(state=state, node=next_node), "created")

    async def snapshot_end(self, state: Any, end: End[Any]) -> None:
        await self._insert(EndSnapshot(state=state, result=end), "end")

    @asynccontextmanager
    async def record_run(self, snapshot_id: str) -> AsyncIterator[None]:
        begun = await self._execute(
            "UPDATE snapshots SET status = 'running' WHERE id = ?"
            " AND status IN ('created', 'pending') RETURNING id",
            snapshot_id,
        )
        if not begun:
            found = await self._execute("SELECT status FROM snapshots WHERE id = ?", snapshot_id)
            if not found:
                raise LookupError(f"no snapshot {snapshot_id}")
            raise GraphNodeStatusError(found[0][0])
        start = perf_counter()
        try:
            yield
        except Exception:
            await self._ended(snapshot_id, "error", perf_counter() - start)
            raise
        await self._ended(snapshot_id, "success", perf_counter() - start)

    async def load_next(self) -> NodeSnapshot[Any, Any] | None:
        rows = await self._execute(
            "UPDATE snapshots SET status = 'pending' WHERE status = 'created' AND position ="
            " (SELECT min(position) FROM snapshots WHERE run = ? AND status = 'created')"
            " RETURNING body, status",
            self.run,
        )
        return self._snapshot(*rows[0]) if rows else None

    async def load_all(self) -> list[Any]:
        rows = await self._execute(
            "SELECT body, status FROM snapshots WHERE run = ? ORDER BY position", self.run
        )
        return [self._snapshot(*row) for row in rows]

    def _snapshot(self, body: str, status: str) -> Any:
        [snapshot] = self._types.validate_json(body)
        if isinstance(snapshot, NodeSnapshot):
            snapshot.status = status  # type: ignore[assignment]
        return snapshot

    async def _insert(self, snapshot: Any, status: str) -> None:
        body = self._types.dump_json([snapshot]).decode()
        await self._execute(
            "INSERT INTO snapshots (run, id, status, body) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (id) DO NOTHING",
            *(self.run, snapshot.id, status, body),
        )

    async def _ended(self, snapshot_id: str, status: str, duration: float) -> None:
        await self._execute("UPDATE snapshots SET status = ? WHERE id = ?", status, snapshot_id)

    @property
    def _sqlite(self) -> bool:
        return self.url.startswith("sqlite:///")

    async def _execute(self, statement: str, *values: Any) -> list[Any]:
        # A connection for each statement is simple, and right in every thread and loop. A
        # service would use a pool.
        if self._sqlite:
            import aiosqlite

            file = self.url.removeprefix("sqlite:///")
            async with aiosqlite.connect(file, timeout=30, isolation_level=None) as session:
                return [*await session.execute_fetchall(statement, values)]
        import psycopg

        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as server:
            cursor = await server.execute(statement.replace("?", "%s").encode(), values)
            return await cursor.fetchall() if cursor.description else []


@dataclass
class Provider:
    """Stands for a payment provider."""

    refunds: list[str] = field(default_factory=list)

    async def refund(self, amount: int, key: str | None) -> None:
        self.refunds.append(f"${amount} {key}")
        await asyncio.sleep(0.3)  # slow: the time in which duplicates arrive


@dataclass
class Order:
    """The state of a run."""

    amount: int


@dataclass
class Refund(BaseNode[Order, Provider, str]):
    """Waits for the approval, by not being run before it."""

    async def run(self, ctx: GraphRunContext[Order, Provider]) -> End[str]:
        # The same for every attempt at this node's pause, and for nothing else.
        claim = current_claim()
        await ctx.deps.refund(ctx.state.amount, claim.idempotency_key if claim else None)
        return End("refunded")


orders: Graph[Order, Provider, str] = Graph(nodes=[Refund], name="orders")


async def approve(url: str, provider: Provider, actor: str) -> int:
    """Go on with the order; the HTTP status that a web handler would answer with."""
    # The one line. Each worker has a persistence of its own, and all have one store.
    persistence = gate(SqlPersistence(url, "order-17"), store=url, run="order-17", actor=actor)
    try:
        async with orders.iter_from_persistence(persistence, deps=provider) as run:
            async for _ in run:
                pass
    except ResumeRefused as refused:
        print(f"{actor}: refused, {refused.reason.value}")
        return refused.http_status
    print(f"{actor}: served")
    return 200


async def main(url: str) -> None:
    parked = SqlPersistence(url, "order-17")
    await parked.setup()
    await orders.initialize(Refund(), parked, state=Order(10))

    provider = Provider()
    statuses = sorted(
        await asyncio.gather(approve(url, provider, "ann"), approve(url, provider, "ben"))
    )
    print("resumes served:", statuses.count(200))
    print(f"resumes refused: {len(statuses) - 1}, with HTTP status {statuses[-1]}")
    print("refunds sent:", len(provider.refunds))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(os.environ.get("REMIT_EXAMPLE_URL", f"sqlite:///{Path(folder, 'o.db')}")))
