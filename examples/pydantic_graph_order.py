"""A graph parks an order in a file, and two workers get the same approval.

The workers are processes that share nothing but the folder. No model and no server are needed.

Prints:

    resumes served: 1
    resumes refused: 1, with HTTP status 409
    refunds sent: 1
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_graph import BaseNode, End, GraphRunContext
from pydantic_graph.graph import Graph
from pydantic_graph.persistence.file import FileStatePersistence

from remit_gates import ResumeRefused, current_claim
from remit_gates.pydantic_graph import gate


@dataclass
class Order:
    """The state of a run."""

    amount: int


@dataclass
class Ask(BaseNode[Order, Path, str]):
    """Asks for the approval. Whoever runs the graph stops after it."""

    async def run(self, ctx: GraphRunContext[Order, Path]) -> Refund:
        return Refund()


@dataclass
class Refund(BaseNode[Order, Path, str]):
    """Waits in the file until somebody goes on."""

    async def run(self, ctx: GraphRunContext[Order, Path]) -> End[str]:
        # The same for every attempt at this approval, and for nothing else.
        claim = current_claim()
        key = claim.idempotency_key if claim else None
        with (ctx.deps / "refunds.txt").open("a") as provider:
            provider.write(f"${ctx.state.amount} {key}\n")
        await asyncio.sleep(0.5)  # a slow provider: the time in which duplicates arrive
        return End("refunded")


orders: Graph[Order, Path, str] = Graph(nodes=[Ask, Refund], name="orders")


def persistence(folder: Path, actor: str | None = None) -> Any:
    """The run's persistence, as every worker opens it."""
    # The one line. The claims live in a file beside the run's.
    return gate(FileStatePersistence(folder / "order-17.json"), actor=actor)


async def park(folder: Path) -> None:
    """Start the order, and leave it when it waits."""
    async with orders.iter(
        Ask(), state=Order(10), deps=folder, persistence=persistence(folder)
    ) as run:
        while not isinstance(await run.next(), Refund):
            pass


async def approve(folder: Path, actor: str) -> int:
    """Go on with the order; the HTTP status that a web handler would answer with."""
    try:
        async with orders.iter_from_persistence(persistence(folder, actor), deps=folder) as run:
            async for _ in run:
                pass
    except ResumeRefused as refused:
        # Not a failure: somebody else's copy of this approval is being served, or was.
        print(f"{actor}: refused, {refused.reason.value}", flush=True)
        return refused.http_status
    print(f"{actor}: served", flush=True)
    return 200


def worker(actor: str, folder: Path, start: Any, results: Any) -> None:
    """Deliver the approval once."""
    start.wait()
    results.put(asyncio.run(approve(folder, actor)))


def main() -> None:
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(park(folder))

        start, results = processes.Barrier(2), processes.Queue()
        workers = [
            processes.Process(target=worker, args=(actor, folder, start, results))
            for actor in ("ann", "ben")
        ]
        for process in workers:
            process.start()
        statuses = sorted(results.get(timeout=60) for _ in workers)
        for process in workers:
            process.join()

        sent = (folder / "refunds.txt").read_text().splitlines()
        print("resumes served:", statuses.count(200))
        print(f"resumes refused: {len(statuses) - 1}, with HTTP status {statuses[-1]}")
        print("refunds sent:", len(sent))


if __name__ == "__main__":
    main()
