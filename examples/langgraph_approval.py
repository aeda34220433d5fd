"""Two workers get the same approval; one is served, the other is told so.

A graph asks a person before it refunds. The click that approves arrives twice, in two
worker processes that share nothing but the SQLite file of the checkpointer. No model and
no server are needed.

Prints:

    answers served: 1
    answers refused: 1, with HTTP status 409
    refunds sent: 1
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from remit_gates import ResumeRefused, current_claim
from remit_gates.langgraph import gate


CONFIG: Any = {"configurable": {"thread_id": "order-17"}}


class Order(TypedDict):
    amount: int
    approved: bool


@contextmanager
def orders(folder: Path) -> Iterator[Any]:
    """The graph, as every worker opens it."""

    def approve(state: Order) -> dict[str, Any]:
        return {"approved": interrupt(f"Refund ${state['amount']}?") == "yes"}

    def refund(state: Order) -> dict[str, Any]:
        # The same for every attempt at this approval, and for nothing else: with it, a
        # provider that knows idempotency keys pays once even when a crash is recovered.
        claim = current_claim()
        key = claim.idempotency_key if claim else None
        with (folder / "refunds.txt").open("a") as provider:
            provider.write(f"${state['amount']} {key}\n")
        time.sleep(0.5)  # a slow provider: the time in which duplicates arrive
        return {}

    builder = StateGraph(Order)
    builder.add_node("approve", approve)
    builder.add_node("refund", refund)
    builder.add_edge(START, "approve")
    builder.add_conditional_edges("approve", lambda order: "refund" if order["approved"] else END)
    builder.add_edge("refund", END)
    with SqliteSaver.from_conn_string(str(folder / "orders.db")) as saver:
        # The one line. The claims live beside the checkpoints, in the same file.
        yield builder.compile(checkpointer=gate(saver))


def worker(name: str, folder: Path, start: Any, results: Any) -> None:
    """Deliver the approval once, as a web handler would."""
    with orders(folder) as graph:
        start.wait()
        try:
            graph.invoke(Command(resume="yes"), CONFIG)
        except ResumeRefused as refused:
            # Not a failure: somebody else's copy of this answer is being served, or was.
            print(f"{name}: refused, {refused.reason.value}", flush=True)
            results.put(refused.http_status)
        else:
            print(f"{name}: served", flush=True)
            results.put(200)


def main() -> None:
    # Fresh processes, not forked ones: a connection must not cross a fork.
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with orders(folder) as graph:
            graph.invoke({"amount": 10}, CONFIG)

        start, results = processes.Barrier(2), processes.Queue()
        workers = [
            processes.Process(target=worker, args=(f"worker {number}", folder, start, results))
            for number in (1, 2)
        ]
        for process in workers:
            process.start()
        statuses = sorted(results.get(timeout=60) for _ in workers)
        for process in workers:
            process.join()

        sent = (folder / "refunds.txt").read_text().splitlines()
        print("answers served:", statuses.count(200))
        print(f"answers refused: {len(statuses) - 1}, with HTTP status {statuses[-1]}")
        print("refunds sent:", len(sent))


if __name__ == "__main__":
    main()
