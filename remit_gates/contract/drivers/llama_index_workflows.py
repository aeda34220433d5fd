"""llama-index-workflows: the context of a workflow, saved as a dictionary, is a run.

The framework hands out the dictionary and keeps none itself. This driver does as its guides
do: it saves `handler.ctx.to_dict()` at each event of the stream, into one file a run, and
continues with `Context.from_dict`.
"""

from __future__ import annotations

# The framework is absent where types are checked, so its decorators have none.
# pyright: reportUntypedFunctionDecorator=false
import asyncio
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from workflows import Context, Workflow, step
from workflows.events import (
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
)

from remit_gates.contract.drivers._kit import Order, Refused, main


class State(BaseModel):
    """What a run carries along."""

    value: str | None = None
    total: int = 0
    done: list[str] = []


class Next(Event):
    """Go to the stage number `at`."""

    at: int


class Branch(Event):
    """Run one step of a stage of several."""

    at: int
    name: str


class Joined(Event):
    """One step of a stage of several is done."""

    at: int


class Asks(InputRequiredEvent):
    """The question of the stage number `at`."""

    at: int


class Answers(HumanResponseEvent):
    """Its answer."""

    at: int
    value: str


class Run(Workflow):
    """Goes through the stages of an order's program."""

    order: Any

    @step
    async def begin(self, ctx: Context[State], ev: StartEvent) -> Next:
        return Next(at=0)

    @step
    async def stage(self, ctx: Context[State], ev: Next) -> Next | Branch | Asks | StopEvent | None:
        names = self.order.stages[ev.at]
        if names[0].startswith("ask"):
            return Asks(at=ev.at)
        if len(names) > 1:
            for name in names:
                ctx.send_event(Branch(at=ev.at, name=name))
            return None
        await self._act(ctx, names[0])
        return self._after(ev.at)

    @step
    async def answered(self, ctx: Context[State], ev: Answers) -> Next | StopEvent:
        (name,) = self.order.stages[ev.at]
        self.order.took(name, ev.value)
        async with ctx.store.edit_state() as state:
            state.value = ev.value
            state.done = [*state.done, name]
        return self._after(ev.at)

    @step
    async def branch(self, ctx: Context[State], ev: Branch) -> Joined:
        await self._act(ctx, ev.name)
        return Joined(at=ev.at)

    @step
    async def join(self, ctx: Context[State], ev: Joined) -> Next | StopEvent | None:
        if ctx.collect_events(ev, [Joined] * len(self.order.stages[ev.at])) is None:
            return None
        return self._after(ev.at)

    async def _act(self, ctx: Context[State], name: str) -> None:
        value = (await ctx.store.get_state()).value
        # In a thread: a step that stands still must not keep the others from being saved.
        await asyncio.to_thread(self.order.step, name, value)
        async with ctx.store.edit_state() as state:
            state.done = [*state.done, name]
            if name == "bad":
                state.total = "lots"

    def _after(self, at: int) -> Next | StopEvent:
        last = at + 1 == len(self.order.stages)
        return StopEvent(result="done") if last else Next(at=at + 1)


class LlamaIndexWorkflows:
    """One order on one file."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = Path(order.folder) / f"{order.run}.json"

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "llama-index-workflows",
            "version": metadata.version("llama-index-workflows"),
            "python": platform.python_version(),
            "gate": "there is no gate for it",
            "verbs": {"edit_invalid": "no call edits a saved context"},
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        return self._run(None, None)

    def answer(self) -> dict[str, Any]:
        saved = self._saved(self._order.handle if self._order.bound else None)
        if not saved["asks"]:
            raise Refused("no question waits in the saved context")
        at = saved["at"]
        return self._run(saved, Answers(at=at, value=self._order.value or ""))

    def go_on(self) -> dict[str, Any]:
        return self._run(self._saved(None), None)

    def fork(self) -> dict[str, Any]:
        saved = self._saved(self._order.handle)
        return self._run(saved, Answers(at=saved["at"], value=self._order.value or ""))

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError("no call edits a saved context")

    def state(self) -> dict[str, Any]:
        if not self._path.exists():
            return {"status": "absent", "asks": [], "done": [], "valid": True, "handle": None}
        saved = self._saved(None)
        data = saved["context"]["state"]["state_data"]
        state = json.loads(data)["value"] if data else {}
        finished = saved["finished"]
        return {
            "status": "finished" if finished else "parked" if saved["asks"] else "unfinished",
            "asks": saved["asks"],
            "done": sorted(set(state.get("done", []))),
            "valid": isinstance(state.get("total", 0), int),
            "handle": str(self._path.with_suffix(f".{saved['at']}")) if saved["asks"] else None,
        }

    def _run(self, saved: dict[str, Any] | None, answer: Answers | None) -> dict[str, Any]:
        asyncio.run(self._through(saved, answer))
        return self.state()

    async def _through(self, saved: dict[str, Any] | None, answer: Answers | None) -> None:
        workflow = Run(timeout=None)
        workflow.order = self._order
        if saved is None:
            handler: Any = workflow.run()
        else:
            handler = workflow.run(ctx=Context.from_dict(workflow, saved["context"]))
        if answer is not None:
            handler.ctx.send_event(answer)
        async for event in handler.stream_events(expose_internal=True):
            asks = [self._order.stages[event.at][0]] if isinstance(event, Asks) else []
            finished = type(event) is StopEvent
            self._save(handler.ctx.to_dict(), asks, getattr(event, "at", 0), finished=finished)
            if asks:
                await handler.cancel_run()
                return
        await handler

    def _save(self, context: Any, asks: list[str], at: int, *, finished: bool) -> None:
        document = {"context": context, "asks": asks, "at": at, "finished": finished}
        fresh = self._path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(document))
        if asks:
            self._path.with_suffix(f".{at}").write_text(json.dumps(document))
        fresh.replace(self._path)

    def _saved(self, handle: str | None) -> dict[str, Any]:
        saved: dict[str, Any] = json.loads(Path(handle or self._path).read_text())
        return saved


if __name__ == "__main__":
    main(LlamaIndexWorkflows)
