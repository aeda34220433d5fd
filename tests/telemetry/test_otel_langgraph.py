"""In a trace of LangGraph, the claim is a span of its own, and no node runs inside it."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest


pytest.importorskip("langgraph")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry import trace

from remit_gates import AlreadyConsumed
from remit_gates.langgraph import gate
from tests.telemetry.recording import Recording, attributes


class State(TypedDict, total=False):
    answer: str


def compiled(seen: list[str]) -> Any:
    def ask(state: State) -> State:
        return {"answer": interrupt("sure?")}

    def act(state: State) -> State:
        seen.append(getattr(trace.get_current_span(), "name", ""))
        return {}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("act", act)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "act")
    return builder.compile(checkpointer=gate(InMemorySaver(), namespace="shop"))


def config(**options: Any) -> Any:
    return {"configurable": {"thread_id": "order-17", **options}}


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_thread_as_it_is_traced_and_counted(recording: Recording, colour: str) -> None:
    recording.instrument()
    seen: list[str] = []
    graph = compiled(seen)

    def invoke(given: Any, config: Any) -> Any:
        with recording.tracer.start_as_current_span("request"):
            return graph.invoke(given, config)

    async def ainvoke(given: Any, config: Any) -> Any:
        with recording.tracer.start_as_current_span("request"):
            return await graph.ainvoke(given, config)

    def call(given: Any, config: Any) -> Any:
        return asyncio.run(ainvoke(given, config)) if colour == "async" else invoke(given, config)

    call({}, config())
    call(Command(resume="yes"), config(remit_delivery="m1"))
    with pytest.raises(AlreadyConsumed):
        call(Command(resume="yes"), config(remit_delivery="m1"))

    assert seen == ["request"]
    served, refused = recording.spans()
    requests = [span.context.span_id for span in recording.spans("request") if span.context]
    assert [span.parent.span_id for span in (served, refused) if span.parent] == requests[1:]
    told = attributes(served)
    assert (told["framework"], told["namespace"], told["run"]) == ("langgraph", "shop", "order-17")
    assert (told["verdict"], told["intent"], told["delivery"]) == ("granted", "answer", "m1")
    assert len(told["pauses"]) == 1
    assert (attributes(refused)["verdict"], attributes(refused)["reason"]) == (
        "refused",
        "consumed",
    )
    assert recording.count("granted", framework="langgraph") == 1
    assert recording.count("refused", reason="consumed") == 1
    assert recording.times("hold.duration", outcome="finished")[0] == 1
