"""pydantic-ai: a message history is a run, and a tool call that needs approval is a question.

Each step is a tool; a model made of a function calls them in the order of the program. The
step that follows a question is a tool with `requires_approval`. The framework keeps no
history: this driver saves it at the end of each run of the agent, one file a run, as the
guide on deferred tools has it.
"""

from __future__ import annotations

import contextlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolApproved
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel

from remit_gates.contract.drivers._kit import Order, Refused, adapter, main, no_gate


_NO_SCHEMA = "a message history has no schema of the user's"
_NONE = "none"


class PydanticAI:
    """One order on one file."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = Path(order.folder) / f"{order.run}.json"
        self._asks: dict[str, str] = {}
        self._steps: list[str] = []
        for at, (step, *_) in enumerate(order.stages):
            if step.startswith("ask"):
                self._asks[order.stages[at + 1][0]] = step
            else:
                self._steps.append(step)

    def describe(self) -> dict[str, Any]:
        package = next(
            name for name in ("pydantic-ai-slim", "pydantic-ai") if _installed(name) is not None
        )
        return {
            "framework": "pydantic-ai",
            "version": _installed(package),
            "python": platform.python_version(),
            "gate": no_gate("pydantic_graph"),
            "programs": {
                "fan": "the model of this run calls one tool at a time",
                "invalid": _NO_SCHEMA,
            },
            "verbs": {"edit_invalid": _NO_SCHEMA},
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        return self._run("begin", [], None)

    def answer(self) -> dict[str, Any]:
        # An approval names the calls that were shown; the history is the newest, unless named.
        shown = self._saved(self._order.handle)
        return self._answer(shown if self._order.bound else self._saved(None), shown)

    def go_on(self) -> dict[str, Any]:
        # A history with an open question goes on with its answer alone; without a history
        # there is nothing but to begin again.
        if self._order.gated and self._path.exists():
            self._release()
        return self.state() if self._path.exists() else self.start()

    def fork(self) -> dict[str, Any]:
        shown = self._saved(self._order.handle)
        return self._answer(shown, shown)

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError(_NO_SCHEMA)

    def state(self) -> dict[str, Any]:
        if not self._path.exists():
            return {"status": "absent", "asks": [], "done": [], "valid": True, "handle": None}
        history = self._saved(None)
        calls = _open(history)
        asks = [self._asks[call.tool_name] for call in calls if call.tool_name in self._asks]
        done = {part.tool_name for part in _returns(history)}
        return {
            "status": "parked" if asks else "finished",
            "asks": asks,
            "done": sorted(done | {self._asks[step] for step in done if step in self._asks}),
            "valid": True,
            "handle": str(self._path.with_suffix(f".{asks[0]}")) if asks else None,
        }

    def _answer(self, history: list[Any], shown: list[Any]) -> dict[str, Any]:
        calls = _open(shown)
        if not _open(history):
            raise Refused("no tool call waits in the saved history")
        approved = ToolApproved(override_args={"value": self._order.value})
        results = DeferredToolResults(approvals={call.tool_call_id: approved for call in calls})
        return self._run(None, history, results)

    def _run(self, prompt: str | None, history: list[Any], results: Any) -> dict[str, Any]:
        agent: Any = Agent(
            FunctionModel(self._model),
            output_type=[str, DeferredToolRequests],
            tools=[self._tool(step) for step in self._steps],
        )
        result = agent.run_sync(
            prompt,
            message_history=history,
            deferred_tool_results=results,
            **({"conversation_id": self._order.run} if not history else {}),
            **self._gate(),
        )
        fresh = self._path.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(result.all_messages_json())
        for call in _open(result.all_messages()):
            self._path.with_suffix(f".{self._asks[call.tool_name]}").write_bytes(fresh.read_bytes())
        fresh.replace(self._path)
        return self.state()

    def _tool(self, step: str) -> Any:
        def run(value: str | None = None) -> str:
            if step in self._asks:
                self._order.took(self._asks[step], value)
            self._order.step(step, value)
            return value or _NONE

        asks = step in self._asks
        return Tool(run, name=step, takes_ctx=False, requires_approval=asks)

    def _model(self, messages: Any, info: Any) -> ModelResponse:
        returned = _returns(messages)
        done = [part.tool_name for part in returned]
        left = [step for step in self._steps if step not in done]
        if not left:
            return ModelResponse(parts=[TextPart("done")])
        last = str(returned[-1].content) if returned else _NONE
        value = None if last == _NONE else last
        call = ToolCallPart(left[0], {"value": value}, tool_call_id=f"{self._order.run}-{left[0]}")
        return ModelResponse(parts=[call])

    def _gate(self) -> dict[str, Any]:
        if not self._order.gated:
            return {}
        once = adapter("pydantic_graph").ConsumeOnce
        return {"capabilities": [once(self._claims, delivery=self._order.delivery)]}

    def _release(self) -> None:
        """Let what failed or was abandoned be answered again, as an operator would."""
        from remit_gates import open_store, release

        with contextlib.closing(open_store(self._claims)) as store:
            for entry in list(store.scan("pydantic-ai")):
                if entry.run.run.startswith(f"{self._order.run}/"):
                    release(store, entry.run.run, framework="pydantic-ai")

    @property
    def _claims(self) -> str:
        return f"sqlite:///{self._order.folder}/claims.db"

    def _saved(self, handle: str | None) -> list[Any]:
        text = Path(handle or self._path).read_bytes()
        return list(ModelMessagesTypeAdapter.validate_json(text))


def _returns(messages: Any) -> list[Any]:
    return [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]


def _open(messages: Any) -> list[Any]:
    """The tool calls that nothing has answered."""
    answered = {part.tool_call_id for part in _returns(messages)}
    parts = messages[-1].parts if messages else []
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    return [call for call in calls if call.tool_call_id not in answered]


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main(PydanticAI)
