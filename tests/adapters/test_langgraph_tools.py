"""Tools that ask: in a `ToolNode`, and under the middleware that asks once for several."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

from remit_gates.errors import AlreadyConsumed
from tests.adapters.graphs import Journal
from tests.adapters.racing import race
from tests.adapters.workers import Graph, Team


def calls(*arguments: dict[str, Any]) -> AIMessage:
    """A message that calls the tool `pay` once for each of `arguments`."""
    return AIMessage(
        "",
        tool_calls=[
            ToolCall(name="pay", args=found, id=f"call-{index}", type="tool_call")
            for index, found in enumerate(arguments)
        ],
    )


def asking(journal: Journal) -> ToolNode:
    """A node with the tool `pay`, which asks before its effect."""

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        answer = interrupt(who)
        journal(f"{who}!")
        return f"{who}: {answer}"

    return ToolNode([pay])


def paying(journal: Journal) -> Any:
    """A graph that calls the tool `pay` for two people at once, and asks for each.

    Each call is a task of its own, as in LangGraph's agents: two calls in one task race
    for the order in which their questions are numbered, gated or not.
    """

    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [calls({"who": "ann"}, {"who": "bob"})]})
    builder.add_node("tools", asking(journal))
    builder.set_entry_point("model")
    builder.add_conditional_edges(
        "model",
        lambda state: [Send("tools", [call]) for call in state["messages"][-1].tool_calls],
        ["tools"],
    )
    return builder


def said(found: Any) -> list[str]:
    return [message.content for message in found["messages"] if message.type == "tool"]


def test_a_tool_node_asks_for_one_tool(team: Team, journal: Journal) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [calls({"who": "ann"})]})
    builder.add_node("tools", asking(journal))
    builder.set_entry_point("model")
    builder.add_edge("model", "tools")
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({"messages": []}, config)

    served = [
        found
        for found in race(
            *[partial(graph.invoke, Command(resume="yes"), config) for graph in (first, second)]
        )
        if isinstance(found, dict)
    ]
    assert [said(found) for found in served] == [["ann: yes"]]
    assert journal.count("ann!") == 1
    with pytest.raises(AlreadyConsumed):
        second.invoke(Command(resume="yes"), config)


@pytest.mark.newest
@pytest.mark.kinds("memory", "sqlite-async", "postgres-pool", "redis", "foreign")
def test_one_question_for_several_actions(team: Team, journal: Journal) -> None:
    """Four racers with the same approval pay each of two people once."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        journal(f"{who}!")
        return f"{who}: paid"

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    def make() -> Graph:
        worker = team.worker()
        model = Model(messages=iter([calls({"who": "ann"}, {"who": "bob"}), AIMessage("done")]))
        ask = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
        return Graph(
            worker,
            create_agent(model, tools=[pay], middleware=[ask], checkpointer=worker.saver),
        )

    agents = [make() for _ in range(4)]
    config = team.thread()
    parked = agents[0].invoke({"messages": [("user", "pay them")]}, config)
    (question,) = parked["__interrupt__"]
    assert len(question.value["action_requests"]) == 2
    answer: Any = Command(resume={"decisions": [{"type": "approve"}, {"type": "approve"}]})
    assert json.dumps(answer.resume)

    outcomes = race(*[partial(agent.invoke, answer, config) for agent in agents])

    served = [found for found in outcomes if isinstance(found, dict)]
    assert len(served) == 1
    assert sorted(said(served[0])) == ["ann: paid", "bob: paid"]
    assert journal.count("ann!") == journal.count("bob!") == 1


@pytest.mark.kinds("memory", "sqlite-async", "postgres-pool", "redis", "foreign")
@pytest.mark.ordinal
def test_two_tools_of_one_node_ask_by_their_own_ids(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(paying(journal)), team.thread()
    graph.invoke({"messages": []}, config)

    found: list[Any] = []
    answered = []
    while asked := graph.waiting(config):
        found.append(graph.invoke(Command(resume={asked[0].id: asked[0].value.upper()}), config))
        answered.append(asked[0].value)
    assert sorted(answered) == ["ann", "bob"]
    assert sorted(said(found[-1])) == ["ann: ANN", "bob: BOB"]
