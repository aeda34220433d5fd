"""LlamaIndex Workflows: snapshots of a context, in a file, are a run.

A question is an `InputRequiredEvent` and its answer a `HumanResponseEvent`, in a context that
was made of the last snapshot. Persisting is the application's: this driver keeps a snapshot
whenever the event stream tells that a step is over, and lets the run end at a question, as
the guides to durable workflows and to a human in the loop do. A fork starts from an earlier
snapshot, which nothing forbids.
"""

from __future__ import annotations

# The framework is absent where types are checked, so its decorators have none.
# pyright: reportUntypedFunctionDecorator=false
import asyncio
import json
import os
import platform
from contextlib import suppress
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
    StepState,
    StepStateChanged,
    StopEvent,
)

from remit_gates.contract.drivers._kit import Order, main


_NO_EDIT = "only a step can write to a context"


class State(BaseModel):
    """The schema of the context's store."""

    value: str | None = None
    total: int = 0
    done: list[str] = []


class Do(Event):
    """The step `name` of the stage `stage` is due."""

    stage: int
    name: str


class Done(Event):
    """It is done."""

    stage: int
    name: str


class Ask(InputRequiredEvent):
    """A question to a human."""

    stage: int
    name: str


class Answer(HumanResponseEvent):
    """What the human said; as in the guides, it does not name the question."""

    value: str | None


class Stages(Workflow):
    """The stages of a program, one after the other."""

    def __init__(self, order: Order) -> None:
        super().__init__(timeout=None)
        self._order = order

    @step
    async def begin(self, ctx: Context[State], ev: StartEvent) -> Do | Ask | StopEvent | None:
        """Where a run begins."""
        return self._enter(ctx, 0)

    @step(num_workers=4)
    async def act(self, ctx: Context[State], ev: Do) -> Done:
        """One step of the program."""
        state = await ctx.store.get_state()
        # Off the loop, as blocking work should be.
        await asyncio.to_thread(self._order.step, ev.name, state.value)
        async with ctx.store.edit_state() as edited:
            edited.done = [*edited.done, ev.name]
            if ev.name == "bad":
                edited.total = "lots"  # what is put to the test
        return Done(stage=ev.stage, name=ev.name)

    @step
    async def join(self, ctx: Context[State], ev: Done) -> Do | Ask | StopEvent | None:
        """The end of a stage."""
        if ctx.collect_events(ev, [Done] * len(self._order.stages[ev.stage])) is None:
            return None
        return self._enter(ctx, ev.stage + 1)

    @step
    async def answered(self, ctx: Context[State], ev: Answer) -> Do | Ask | StopEvent | None:
        """A human answered the question that comes after what is done."""
        async with ctx.store.edit_state() as state:
            asks = [stage[0] for stage in self._order.stages if stage[0].startswith("ask")]
            name = next((ask for ask in asks if ask not in state.done), asks[-1])
            self._order.took(name, ev.value)
            state.value = ev.value
            state.done = [*state.done, name]
        stage = next(n for n, each in enumerate(self._order.stages) if name in each)
        return self._enter(ctx, stage + 1)

    def _enter(self, ctx: Context[State], stage: int) -> Do | Ask | StopEvent | None:
        if stage == len(self._order.stages):
            return StopEvent(result="done")
        first, *others = self._order.stages[stage]
        if first.startswith("ask"):
            return Ask(stage=stage, name=first)
        for other in others:
            ctx.send_event(Do(stage=stage, name=other))
        return Do(stage=stage, name=first)


class LlamaIndexWorkflows:
    """One order on one file of snapshots."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._path = Path(order.folder) / f"{order.run}.json"

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "llama-index-workflows",
            "version": metadata.version("llama-index-workflows"),
            "python": platform.python_version(),
            "gate": "there is no gate for LlamaIndex Workflows",
            "verbs": {"edit_invalid": _NO_EDIT},
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        return self._run(None)

    def answer(self) -> dict[str, Any]:
        return self._run(self._last(), Answer(value=self._order.value))

    def go_on(self) -> dict[str, Any]:
        # Where there is no snapshot yet, there is nothing to do but to begin.
        return self._run(self._last())

    def fork(self) -> dict[str, Any]:
        earlier = self._snapshots()[self._order.handle]
        self._path = self._path.with_suffix(f".{self._order.number}.json")
        return self._run(earlier, Answer(value=self._order.value))

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError(_NO_EDIT)

    def state(self) -> dict[str, Any]:
        snapshots = self._snapshots()
        if not snapshots:
            return {"status": "absent", "asks": [], "done": [], "valid": True, "handle": None}
        last = snapshots[-1]
        state = json.loads(last["context"]["state"]["state_data"])["value"]
        asks = [last["ask"]] if last["ask"] else []
        status = "parked" if asks else "finished" if last["over"] else "unfinished"
        return {
            "status": status,
            "asks": asks,
            "done": sorted(set(state["done"])),
            "valid": isinstance(state["total"], int),
            "handle": len(snapshots) - 1,
        }

    def _run(self, snapshot: dict[str, Any] | None, answer: Answer | None = None) -> dict[str, Any]:
        asyncio.run(self._go(snapshot, answer))
        return self.state()

    async def _go(self, snapshot: dict[str, Any] | None, answer: Answer | None) -> None:
        workflow = Stages(self._order)
        ctx = None if snapshot is None else Context.from_dict(workflow, snapshot["context"])
        handler = workflow.run() if ctx is None else workflow.run(ctx=ctx)
        if answer is not None:
            handler.ctx.send_event(answer)
        async for event in handler.stream_events(expose_internal=True):
            if isinstance(event, Ask):
                self._keep(handler, ask=event.name)
                await handler.cancel_run()
                return
            if isinstance(event, StepStateChanged) and event.step_state is StepState.NOT_RUNNING:
                self._keep(handler)
        await handler
        self._keep(handler, over=True)

    def _keep(self, handler: Any, *, ask: str = "", over: bool = False) -> None:
        context = handler.ctx.to_dict()
        if not context["is_running"] and not over:
            # A run that failed. Its context would begin anew, and the one before it goes on.
            return
        entry = {"context": context, "ask": ask, "over": over}
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _last(self) -> dict[str, Any] | None:
        snapshots = self._snapshots()
        return snapshots[-1] if snapshots else None

    def _snapshots(self) -> list[dict[str, Any]]:
        with suppress(FileNotFoundError):
            text = self._path.read_text()
            return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        return []


if __name__ == "__main__":
    main(LlamaIndexWorkflows)
