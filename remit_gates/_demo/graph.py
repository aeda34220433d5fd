"""The graph of the demo: nothing in it knows whether its checkpointer is gated."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from remit_gates._demo.journal import Journal


class Todo(TypedDict):
    """What a run is started with."""

    todo: list[str]


class State(Todo):
    """What it knows later."""

    request: str
    approved: bool


Graph: TypeAlias = CompiledStateGraph[State, None, Todo, State]


def build(saver: BaseCheckpointSaver[Any], journal: Journal) -> Graph:
    """Draft, approve (which asks a person), charge and notify, once for each request."""

    def draft(state: State) -> dict[str, object]:
        request, *todo = state["todo"]
        journal.note("draft", request)
        return {"request": request, "todo": todo}

    def approve(state: State) -> dict[str, object]:
        journal.note("approve", state["request"])
        return {"approved": interrupt(f"{state['request']}?") == "yes"}

    def charge(state: State) -> dict[str, object]:
        journal.note("charge", state["request"])
        journal.await_provider()
        return {}

    def notify(state: State) -> dict[str, object]:
        journal.note("notify", state["request"])
        return {}

    def approved(state: State) -> str:
        return "charge" if state["approved"] else END

    def more(state: State) -> str:
        return "draft" if state["todo"] else END

    builder = StateGraph(State, input_schema=Todo)
    builder.add_node("draft", draft)
    builder.add_node("approve", approve)
    builder.add_node("charge", charge)
    builder.add_node("notify", notify)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "approve")
    builder.add_conditional_edges("approve", approved, ["charge", END])
    builder.add_edge("charge", "notify")
    builder.add_conditional_edges("notify", more, ["draft", END])
    return builder.compile(checkpointer=saver)
