"""An agent of pydantic-ai for tests, its drivers, and racers on one parked history.

`pay` needs an approval, `fetch` is done elsewhere, and `charge` is a plain tool. Each effect,
and each call of the model, is one line of a file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from remit_gates import Policy, ResumeRefused, current_claim, open_store
from remit_gates.pydantic_graph import ConsumeOnce
from tests.waiting import PATIENCE


@dataclass
class Till:
    """Where an agent writes down what it does, and what it does there besides.

    Attributes:
        journal: The file.
        calls: What the model answers to a prompt; it then ends, when the tools have returned.
        then: By tool, or `model`, what it does after that.
    """

    journal: Path
    calls: tuple[str, ...] = ("pay", "pay")
    then: dict[str, Callable[[], Any]] = field(default_factory=dict)

    async def note(self, line: str, name: str = "") -> None:
        with self.journal.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode())
        done = self.then.get(name or line, int)()
        if asyncio.iscoroutine(done):
            await done

    @property
    def lines(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def count(self, line: str) -> int:
        return self.lines.count(line)


def agent_on(till: Till, *capabilities: Any) -> Any:
    """The agent, as every worker has it."""

    def answer(messages: list[Any]) -> ModelResponse:
        returned = any(part.part_kind == "tool-return" for part in messages[-1].parts)
        if returned:
            return ModelResponse([TextPart("done")])
        return ModelResponse(
            [
                ToolCallPart(name, {"amount": 10 * number}, f"call-{number}")
                for number, name in enumerate(till.calls, 1)
            ]
        )

    async def function(messages: list[Any], info: AgentInfo) -> ModelResponse:
        await till.note("model")
        return answer(messages)

    async def stream(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        await till.note("model")
        for index, part in enumerate(answer(messages).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield {
                    index: DeltaToolCall(
                        name=part.tool_name,
                        json_args=part.args_as_json_str(),
                        tool_call_id=part.tool_call_id,
                    )
                }

    agent: Agent[None, Any] = Agent(
        FunctionModel(function, stream_function=stream),
        output_type=[str, DeferredToolRequests],
        capabilities=[*capabilities],
        name="till",
    )

    @agent.tool_plain(requires_approval=True)
    async def pay(amount: int) -> str:
        claim = current_claim()
        await till.note(f"pay {amount}", "pay")
        return f"paid {amount} with {claim.idempotency_key if claim else None}"

    @agent.tool_plain
    async def charge(amount: int) -> str:
        await till.note(f"charge {amount}", "charge")
        return f"charged {amount}"

    @agent.tool_plain
    async def fetch(amount: int) -> str:
        from pydantic_ai import CallDeferred

        raise CallDeferred

    return agent


async def run(agent: Any, **given: Any) -> Any:
    return (await agent.run(**given)).output


async def run_stream(agent: Any, **given: Any) -> Any:
    async with agent.run_stream(**given) as stream:
        return await stream.get_output()


async def run_stream_events(agent: Any, **given: Any) -> Any:
    events = agent.run_stream_events(**given)
    if hasattr(events, "__aenter__"):
        async with events as stream:
            seen = [event async for event in stream]
    else:
        seen = [event async for event in events]
    return seen[-1].result.output


async def iter_next(agent: Any, **given: Any) -> Any:
    async with agent.iter(**given) as stepped:
        node = stepped.next_node
        while not hasattr(node, "data"):
            node = await stepped.next(node)
    return stepped.result.output


async def iter_stream(agent: Any, **given: Any) -> Any:
    async with agent.iter(**given) as stepped:
        node = stepped.next_node
        while not hasattr(node, "data"):
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                streamed: Any = node.stream(stepped.ctx)
                async with streamed as stream:
                    async for _ in stream:
                        pass
            node = await stepped.next(node)
    return stepped.result.output


async def iter_bare(agent: Any, **given: Any) -> Any:
    async with agent.iter(**given) as stepped:
        async for _ in stepped:
            pass
    return stepped.result.output


async def run_sync(agent: Any, **given: Any) -> Any:
    def call() -> Any:
        # It wants a loop of its own.
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        try:
            return agent.run_sync(**given).output
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            asyncio.set_event_loop(None)

    return await asyncio.to_thread(call)


DRIVERS: Final = {
    "run": run,
    "run_sync": run_sync,
    "run_stream": run_stream,
    "run_stream_events": run_stream_events,
    "iter, next": iter_next,
    "iter, streams": iter_stream,
    "iter, bare": iter_bare,
}


async def park(till: Till, **options: Any) -> list[Any]:
    """A history whose last calls wait."""
    result = await agent_on(till).run("go", **options)
    messages: list[Any] = result.all_messages()
    return messages


def approvals(history: list[Any], approved: bool = True) -> DeferredToolResults:
    """One answer for all of its calls."""
    ids = [call.tool_call_id for call in history[-1].tool_calls]
    return DeferredToolResults(approvals=dict.fromkeys(ids, approved))


async def outcome(work: Coroutine[Any, Any, Any]) -> Any:
    """What `work` returns, or the exception that it raises."""
    try:
        return await work
    except Exception as error:
        return error


def split(outcomes: list[Any]) -> tuple[list[Any], list[Any]]:
    """What was served, and what was refused; anything else is a fault."""
    refused = [found for found in outcomes if isinstance(found, ResumeRefused)]
    served = [found for found in outcomes if isinstance(found, str)]
    assert len(served) + len(refused) == len(outcomes), outcomes
    return served, refused


def racer(url: str, folder: Path, history: bytes, driver: str) -> Callable[[], Any]:
    """A racer in a process of its own."""
    till = Till(folder / "journal")
    agent = agent_on(till, ConsumeOnce(url))
    messages = ModelMessagesTypeAdapter.validate_json(history)

    def race() -> Any:
        given = {"message_history": messages, "deferred_tool_results": approvals(messages)}
        found = asyncio.run(outcome(DRIVERS[driver](agent, **given)))
        return found if isinstance(found, (str, ResumeRefused)) else repr(found)

    return race


def stand_still(url: str, folder: Path, history: bytes, lease: float) -> None:
    """Answer in a process of its own, and stand still in the first tool for ever."""

    def still() -> None:
        (folder / "standing").touch()
        time.sleep(PATIENCE)

    till = Till(folder / "journal", then={"pay": still})
    agent = agent_on(till, ConsumeOnce(url, policy=Policy(lease=lease)))
    messages = ModelMessagesTypeAdapter.validate_json(history)
    asyncio.run(run(agent, message_history=messages, deferred_tool_results=approvals(messages)))


def records(url: str) -> list[Any]:
    """What the store at `url` knows of runs of agents."""
    with closing(open_store(url)) as store:
        store.setup()
        return [entry.snapshot.record for entry in store.scan("pydantic-ai")]
