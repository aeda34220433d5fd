"""autogen-agentchat: the saved state of a team is a run.

A team of one agent a step, in turns. A question is a hand-off to the user, which ends the
team's run; then the team's state is saved, as the guide on human-in-the-loop has it. The
framework has no place of its own to keep it: this driver keeps one file a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import HandoffTermination, TextMentionTermination
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from remit_gates.contract.drivers._kit import Order, main


_NO_SCHEMA = "the state of a team has no schema of the user's"
_BEGIN = "begin"
_DONE = "ALL-DONE"


class Agent(BaseChatAgent):
    """Runs one step when its turn comes."""

    def __init__(self, order: Order, step: str, before: str, *, last: bool) -> None:
        super().__init__(step, "runs one step")
        self._order = order
        self._before = before
        self._last = last
        self._value: str | None = None

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage, HandoffMessage)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        step = self.name
        for message in messages:
            # The task that a team begins with is no answer.
            told = message.source == "user" and isinstance(message, TextMessage)
            if told and message.content != _BEGIN:
                self._value = message.content
                if self._before and message is messages[-1]:
                    self._order.took(self._before, self._value)
        if step.startswith("ask"):
            asks = HandoffMessage(source=step, target="user", content=step)
            return Response(chat_message=asks)
        self._order.step(step, self._value)
        return Response(
            chat_message=TextMessage(source=step, content=_DONE if self._last else step)
        )

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._value = None

    async def save_state(self) -> dict[str, Any]:
        return {"value": self._value}

    async def load_state(self, state: Any) -> None:
        self._value = state["value"]


class AutoGen:
    """One order on one file."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = Path(order.folder) / f"{order.run}.json"

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "autogen-agentchat",
            "version": metadata.version("autogen-agentchat"),
            "python": platform.python_version(),
            "gate": "there is no gate for it",
            "programs": {
                "fan": "the agents of this team take turns, so writes have one order",
                "invalid": _NO_SCHEMA,
            },
            "verbs": {"edit_invalid": _NO_SCHEMA},
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        return self._run(None, _BEGIN)

    def answer(self) -> dict[str, Any]:
        return self._run(self._saved(self._order.handle if self._order.bound else None))

    def go_on(self) -> dict[str, Any]:
        # What was saved last is all there is; a run that never parked starts again.
        saved = self._saved(None)
        if saved is not None and saved["asks"]:
            return self.state()  # it shows a question, which only an answer continues
        return self._run(saved, _BEGIN if saved is None else "")

    def fork(self) -> dict[str, Any]:
        return self._run(self._saved(self._order.handle))

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError(_NO_SCHEMA)

    def state(self) -> dict[str, Any]:
        saved = self._saved(None)
        if saved is None:
            return {"status": "absent", "asks": [], "done": [], "valid": True, "handle": None}
        asks = saved["asks"]
        return {
            "status": "parked" if asks else "finished" if saved["finished"] else "unfinished",
            "asks": asks,
            "done": saved["done"],
            "valid": True,
            "handle": str(self._path.with_suffix(f".{asks[0]}")) if asks else None,
        }

    def _run(self, saved: dict[str, Any] | None, task: str | None = None) -> dict[str, Any]:
        asyncio.run(self._through(saved, task))
        return self.state()

    async def _through(self, saved: dict[str, Any] | None, task: str | None) -> None:
        steps = [step for stage in self._order.stages for step in stage]
        agents: list[Any] = [
            Agent(
                self._order,
                step,
                steps[at - 1] if at and steps[at - 1].startswith("ask") else "",
                last=at + 1 == len(steps),
            )
            for at, step in enumerate(steps)
        ]
        ends = HandoffTermination(target="user") | TextMentionTermination(_DONE)
        team = RoundRobinGroupChat(agents, termination_condition=ends)
        if saved is not None:
            await team.load_state(saved["team"])
        said = self._order.value if task is None else task
        result = await team.run(task=TextMessage(source="user", content=said) if said else None)
        last = result.messages[-1]
        asks = [last.source] if isinstance(last, HandoffMessage) else []
        ran = [message.source for message in result.messages if message.source in steps]
        before = [] if saved is None else saved["done"]
        document = {
            "team": await team.save_state(),
            "asks": asks,
            "finished": not asks,
            "done": sorted({*before, *ran} - set(asks)),
        }
        fresh = self._path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(document))
        for ask in asks:
            self._path.with_suffix(f".{ask}").write_text(json.dumps(document))
        fresh.replace(self._path)

    def _saved(self, handle: str | None) -> dict[str, Any] | None:
        try:
            saved: dict[str, Any] = json.loads(Path(handle or self._path).read_text())
        except FileNotFoundError:
            return None
        return saved


if __name__ == "__main__":
    main(AutoGen)
