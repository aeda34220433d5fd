"""pydantic-graph 1.x: a history of snapshots in a file is a run.

A run parks before a node that needs an answer, as the question example of its documentation
does, and is continued with `iter_from_persistence`. There is no other verb.
"""

from __future__ import annotations

import asyncio
import json
import platform
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic_graph import BaseNode, End, Graph, GraphRunContext
from pydantic_graph.persistence.file import FileStatePersistence

from remit_gates.contract.drivers._kit import Order, adapter, main, no_gate


_EARLIER = "no call goes back to an earlier snapshot"

_orders: dict[str, Order] = {}


@dataclass
class State:
    """What a run carries along. A node finds its order by the name of the run."""

    run: str = ""
    value: str | None = None
    total: int = 0
    done: list[str] = field(default_factory=list)


@dataclass
class Step(BaseNode[State, None, str]):
    """The stage number `at`."""

    at: int = 0

    async def run(self, ctx: GraphRunContext[State]) -> Step | Ask | End[str]:
        order = _orders[ctx.state.run]
        (name,) = order.stages[self.at]
        # Fails where a human would see it: in the node, not in a copy of its state.
        order.step(name, ctx.state.value)
        ctx.state.done = [*ctx.state.done, name]
        if name == "bad":
            ctx.state.total = "lots"  # type: ignore[assignment]  # what is put to the test
        return _next(order, self.at)


@dataclass
class Ask(BaseNode[State, None, str]):
    """A question, which runs once its answer is in the state."""

    at: int = 0

    async def run(self, ctx: GraphRunContext[State]) -> Step | Ask | End[str]:
        order = _orders[ctx.state.run]
        (name,) = order.stages[self.at]
        order.took(name, ctx.state.value)
        ctx.state.done = [*ctx.state.done, name]
        return _next(order, self.at)


def _next(order: Order, at: int) -> Step | Ask | End[str]:
    if at + 1 == len(order.stages):
        return End("done")
    asks = order.stages[at + 1][0].startswith("ask")
    return Ask(at + 1) if asks else Step(at + 1)


_GRAPH: Graph[State, None, str] = Graph(nodes=(Step, Ask))


class PydanticGraph:
    """One order on one file."""

    def __init__(self, order: Order) -> None:
        self._order = order
        _orders[order.run] = order
        # Before any call is looked up on a graph: the gate hooks into them at its import.
        self._gate: Any = adapter("pydantic_graph").gate if order.gated else None
        self._path = Path(order.folder) / f"{order.run}.json"

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "pydantic-graph",
            "version": metadata.version("pydantic-graph"),
            "python": platform.python_version(),
            "gate": no_gate("pydantic_graph"),
            "programs": {"fan": "nodes run one at a time, so writes have one order"},
            "verbs": {"fork": _EARLIER, "edit_invalid": "no call edits a persisted state"},
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        async def start() -> None:
            state = State(run=self._order.run)
            async with _GRAPH.iter(Step(0), state=state, persistence=self._persistence()) as run:
                await self._to_the_next_question(run)

        asyncio.run(start())
        return self.state()

    def answer(self) -> dict[str, Any]:
        async def answer() -> None:
            async with _GRAPH.iter_from_persistence(self._persistence()) as run:
                run.state.value = self._order.value
                await self._to_the_next_question(run)

        asyncio.run(answer())
        return self.state()

    def go_on(self) -> dict[str, Any]:
        async def go_on() -> None:
            async with _GRAPH.iter_from_persistence(self._persistence()) as run:
                await self._to_the_next_question(run)

        asyncio.run(go_on())
        return self.state()

    def fork(self) -> dict[str, Any]:
        raise NotImplementedError(_EARLIER)

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError("no call edits a persisted state")

    def state(self) -> dict[str, Any]:
        # The file itself: loading it would take what waits in it.
        try:
            history: list[dict[str, Any]] = json.loads(self._path.read_text())
        except FileNotFoundError:
            history = []
        last: dict[str, Any] = history[-1] if history else {"state": {}, "kind": "none"}
        state = last["state"]
        node = last.get("node") or {}
        asks = []
        if node.get("node_id") == "Ask" and last.get("status") in ("created", "pending"):
            asks = list(self._order.stages[node["at"]])
        status = "finished" if last["kind"] == "end" else "parked" if asks else "unfinished"
        return {
            "status": status if history else "absent",
            "asks": asks,
            "done": state.get("done", []),
            "valid": isinstance(state.get("total", 0), int),
            "handle": last.get("id"),
        }

    async def _to_the_next_question(self, run: Any) -> None:
        node = await run.next()
        while not isinstance(node, (Ask, End)):
            node = await run.next()

    def _persistence(self) -> Any:
        persistence: Any = FileStatePersistence(self._path)
        if self._gate is not None:
            from remit_gates import Policy

            # There is no verb for going on: who does so says it by the policy.
            again = Policy(on_abandoned="serve", on_failure="retry")
            policy = again if self._order.verb == "go_on" else Policy()
            persistence = self._gate(
                persistence, policy=policy, pause=self._order.handle, delivery=self._order.delivery
            )
        return persistence


if __name__ == "__main__":
    main(PydanticGraph)
