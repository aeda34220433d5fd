"""pydantic-ai: a history of messages is a run, and a tool that needs approval is a question.

The model is a function that calls the tools of the program in their order. Persisting the
history is the application's: this driver keeps `all_messages_json()` when a run of the agent
ends, as the documentation does, and answers with `DeferredToolResults`. A fork answers an
earlier history, which nothing forbids.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from remit_gates.contract.drivers._kit import Order, adapter, main, no_gate


_NO_SCHEMA = "what is kept are pydantic-ai's own messages, and no state of a user's schema"


class PydanticAI:
    """One order on one file of histories."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = Path(order.folder) / f"{order.run}.jsonl"
        self._store = f"sqlite:///{order.folder}/claims.db"
        self._conversation = order.run

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "pydantic-ai",
            "version": metadata.version("pydantic-ai-slim"),
            "python": platform.python_version(),
            "gate": no_gate("pydantic_graph"),
            "programs": {"invalid": _NO_SCHEMA},
            "verbs": {"edit_invalid": _NO_SCHEMA},
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        return self._run(None)

    def answer(self) -> dict[str, Any]:
        # An answer always names the calls that it is for: those that were shown.
        shown = self._order.handle or {"calls": _asked(self._last() or [])}
        return self._run(self._last(), self._results(shown["calls"]))

    def go_on(self) -> dict[str, Any]:
        history = self._last()
        if history and _asked(history) and self._order.gated:
            # The operator's way, once an answer has failed: the question is open again.
            from remit_gates import release

            release(self._store, self._conversation, framework="pydantic-ai")
            return self.state()
        # Where no history was kept, there is nothing to do but to begin.
        return self._run(history)

    def fork(self) -> dict[str, Any]:
        handle = self._order.handle
        earlier = self._histories()[handle["history"]]
        self._conversation = f"{self._order.run}~{self._order.number}"
        self._path = self._path.with_suffix(f".{self._order.number}.jsonl")
        return self._run(earlier, self._results(handle["calls"]))

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError(_NO_SCHEMA)

    def state(self) -> dict[str, Any]:
        histories = self._histories()
        last = histories[-1] if histories else []
        calls = _asked(last)
        finished = bool(last) and not calls
        return {
            "status": "parked" if calls else "finished" if finished else "absent",
            "asks": sorted(calls.values()),
            "done": sorted(_done(last)),
            "valid": True,
            "handle": {"history": len(histories) - 1, "calls": calls} if calls else None,
        }

    def _results(self, calls: dict[str, str]) -> DeferredToolResults:
        value = self._order.value
        return DeferredToolResults(
            approvals={
                call: ToolApproved(override_args={"name": name, "value": value})
                for call, name in calls.items()
            }
        )

    def _run(
        self, history: list[ModelMessage] | None, results: DeferredToolResults | None = None
    ) -> dict[str, Any]:
        async def run() -> Any:
            return await _agent(self._order, self._capabilities()).run(
                "Go." if history is None else None,
                message_history=history,
                deferred_tool_results=results,
            )

        kept = asyncio.run(run()).all_messages_json()
        with self._path.open("ab") as file:
            file.write(json.dumps(json.loads(kept)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return self.state()

    def _capabilities(self) -> list[Any]:
        if not self._order.gated:
            return []
        once = adapter("pydantic_graph").ConsumeOnce
        delivery, scope = self._order.delivery, self._conversation
        return [once(self._store, scope_key=scope, delivery=delivery)]

    def _last(self) -> list[ModelMessage] | None:
        histories = self._histories()
        return histories[-1] if histories else None

    def _histories(self) -> list[list[ModelMessage]]:
        with suppress(FileNotFoundError):
            text = self._path.read_text()
            lines = text[: text.rfind("\n") + 1].splitlines()
            return [ModelMessagesTypeAdapter.validate_json(line) for line in lines]
        return []


def _agent(order: Order, capabilities: list[Any]) -> Agent[None, Any]:
    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = _done(messages)
        values = [value for name, value in done.items() if name.startswith("ask")]
        value = values[-1] if values else None
        for stage in order.stages:
            due = [step for step in stage if step not in done]
            if due:
                return ModelResponse([_call(step, value) for step in due])
        return ModelResponse([TextPart("done")])

    options: dict[str, Any] = {"capabilities": capabilities} if capabilities else {}
    agent: Agent[None, Any] = Agent(
        FunctionModel(model), output_type=[str, DeferredToolRequests], **options
    )

    @agent.tool_plain
    def act(name: str, value: str | None) -> str | None:
        order.step(name, value)
        return value

    @agent.tool_plain(requires_approval=True)
    def ask(name: str, value: str | None) -> str | None:
        order.took(name, value)
        return value

    return agent


def _call(step: str, value: str | None) -> ToolCallPart:
    tool = "ask" if step.startswith("ask") else "act"
    return ToolCallPart(tool, {"name": step, "value": value}, f"call-{step}")


def _done(messages: list[ModelMessage]) -> dict[str, Any]:
    """The steps that are done, with what they returned, in their order."""
    return {
        part.tool_call_id.removeprefix("call-"): part.content
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }


def _asked(messages: list[ModelMessage]) -> dict[str, str]:
    """The calls that wait for an approval, and the steps that they are."""
    last = messages[-1] if messages else None
    if not isinstance(last, ModelResponse):
        return {}
    return {
        part.tool_call_id: part.tool_call_id.removeprefix("call-")
        for part in last.parts
        if isinstance(part, ToolCallPart) and part.tool_name == "ask"
    }


if __name__ == "__main__":
    main(PydanticAI)
