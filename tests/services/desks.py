"""A gated graph for services: it asks, pays, and asks again."""

from __future__ import annotations

import threading
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from remit_gates.langgraph import gate


class State(TypedDict, total=False):
    first: str
    second: str


class Desk:
    """A graph that asks twice, and pays in between."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.paying = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        builder = StateGraph(State)
        builder.add_node("refund", lambda state: {"first": interrupt("Refund $10?")})
        builder.add_node("pay", self._pay)
        builder.add_node("wire", lambda state: {"second": interrupt("Wire $10,000?")})
        builder.add_edge(START, "refund")
        builder.add_edge("refund", "pay")
        builder.add_edge("pay", "wire")
        self.graph = builder.compile(checkpointer=gate(InMemorySaver()))

    def _pay(self, state: State) -> State:
        self.paying.set()
        assert self.may_end.wait(20)
        if state.get("first") == "break":
            raise ConnectionError("secret words")
        self.paid.append(state.get("first", ""))
        return {}

    def ask(self, run: str = "order-17") -> str:
        self.graph.invoke({}, {"configurable": {"thread_id": run}})
        return run

    def deliver(self, run: str, answer: str, key: str | None) -> dict[str, Any]:
        config: Any = {"configurable": {"thread_id": run, "remit_delivery": key}}
        done = self.graph.invoke(Command(resume=answer), config)
        return {"waits": "__interrupt__" in done}
