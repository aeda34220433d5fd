"""CrewAI: a flow's id is a run, `@human_feedback` is a question, and `from_pending(...).resume`
answers it.

A run that broke is continued by `kickoff` with its persisted id, which is how CrewAI's guide
on `@persist` resumes after a crash; with the option `recovery=checkpoint`, from the newest
checkpoint.
"""

from __future__ import annotations

import json
import platform
import types
from importlib import metadata
from pathlib import Path
from typing import Any

from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.flow import Flow, FlowState, and_, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import SQLiteFlowPersistence, persist

from remit_gates.contract.drivers._kit import Order, adapter, main, no_gate


_EARLIER = "no call goes back to a pause that was answered"


class State(FlowState):
    """What a run carries along."""

    value: Any = None
    total: int = 0
    done: list = []  # type: ignore[type-arg]


class _Asks:
    """A provider that has the flow pause."""

    def request_feedback(self, context: Any, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


class CrewAI:
    """One order on one flow."""

    def __init__(self, order: Order) -> None:
        self._order = order
        if order.verb != "describe":
            self._stock: Any = SQLiteFlowPersistence(str(Path(order.folder) / "flows.db"))
            self._persistence = _gated(order, self._stock)

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "crewai",
            "version": metadata.version("crewai"),
            "python": platform.python_version(),
            "gate": no_gate("crewai"),
            "verbs": {"fork": _EARLIER, "edit_invalid": "no call edits a persisted state"},
        }

    def setup(self) -> None:
        """The persistence made its tables when it was opened."""

    def start(self) -> dict[str, Any]:
        self._class()(**self._checkpoints()).kickoff(inputs={"id": self._order.run})
        return self.state()

    def answer(self) -> dict[str, Any]:
        flow = self._class().from_pending(self._order.run, self._persistence)
        options = {"remit_delivery": self._order.delivery} if self._order.gated else {}
        flow.resume(self._order.value, **options)
        return self.state()

    def go_on(self) -> dict[str, Any]:
        if self._order.options.get("recovery") == "checkpoint":
            return self._from_checkpoint()
        self._class()().kickoff(inputs={"id": self._order.run})
        return self.state()

    def fork(self) -> dict[str, Any]:
        raise NotImplementedError(_EARLIER)

    def edit_invalid(self) -> dict[str, Any]:
        raise NotImplementedError("no call edits a persisted state")

    def state(self) -> dict[str, Any]:
        pending = self._stock.load_pending_feedback(self._order.run)
        saved = self._stock.load_state(self._order.run) or {}
        asks = [] if pending is None else [pending[1].method_name]
        done = set(saved.get("done", []))
        finished = set(self._order.stages[-1]) <= done
        status = "parked" if asks else "finished" if finished else "unfinished"
        return {
            "status": status if saved or asks else "absent",
            "asks": asks,
            "done": sorted(done),
            "valid": isinstance(saved.get("total", 0), int),
            "handle": None if pending is None else pending[1].requested_at.isoformat(),
        }

    def _from_checkpoint(self) -> dict[str, Any]:
        from crewai.state.checkpoint_config import CheckpointConfig

        folder = Path(self._order.folder) / f"checkpoints-{self._order.run}"
        written = sorted(folder.rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        if not written:
            raise FileNotFoundError("no checkpoint was written")
        json.loads(written[-1].read_text())  # one that was cut short is none
        config = CheckpointConfig(restore_from=str(written[-1]))
        self._class().from_checkpoint(config).kickoff()
        return self.state()

    def _checkpoints(self) -> dict[str, Any]:
        if self._order.options.get("recovery") != "checkpoint":
            return {}
        from crewai.state.checkpoint_config import CheckpointConfig

        folder = Path(self._order.folder) / f"checkpoints-{self._order.run}"
        on = ["method_execution_finished"]
        return {"checkpoint": CheckpointConfig(location=str(folder), on_events=on)}

    def _class(self) -> Any:
        """The flow of the program, made of decorated methods as one would write it."""
        methods: dict[str, Any] = {"_skip_auto_memory": True}
        before: tuple[Any, ...] = ()
        for stage in self._order.stages:
            made = []
            for step in stage:
                method = _method(self._order, step, before[0].__name__ if before else "")
                if step.startswith("ask"):
                    method = human_feedback(message=step, provider=_Asks())(method)
                after = before[0] if len(before) == 1 else and_(*before) if before else None
                methods[step] = start()(method) if after is None else listen(after)(method)
                made.append(methods[step])
            before = tuple(made)
        flow: Any = types.new_class("Run", (Flow[State],), {}, lambda body: body.update(methods))
        return persist(self._persistence)(flow)


def _method(order: Order, step: str, before: str) -> Any:
    def run(self: Any, *given: Any) -> str:
        feedback = getattr(given[0], "feedback", None) if given else None
        if feedback is not None:
            order.took(before, feedback)
            self.state.value = feedback
        if not step.startswith("ask"):
            order.step(step, self.state.value)
        if step == "bad":
            self.state.total = "lots"
        self.state.done = [*self.state.done, step]
        return step

    def first(self: Any) -> str:
        return run(self)

    def later(self: Any, result: Any = None) -> str:
        return run(self, result)

    made = later if before else first
    made.__name__ = made.__qualname__ = step
    return made


def _gated(order: Order, persistence: Any) -> Any:
    if not order.gated:
        return persistence
    return adapter("crewai").gate(persistence)


if __name__ == "__main__":
    main(CrewAI)
