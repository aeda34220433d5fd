"""A graph whose every step is written down outside of it, as an effect would be.

An entry is one write to a file opened with O_APPEND: it survives a kill, and nothing that
the graph rolls back is uncounted.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from tests.waiting import PATIENCE, POLL, until


class Journal:
    """What ran, in every process that was given the same folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = os.open(folder / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, run: str, step: str) -> None:
        """Record that `step` of `run` has begun."""
        os.write(self._file, f"{run} {step}\n".encode())

    def steps(self, run: str) -> list[str]:
        """The steps of `run` so far, in their order."""
        lines = (self._folder / "journal").read_text("utf-8").splitlines()
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] == run]

    def counts(self, run: str) -> Counter[str]:
        """How often each step of `run` began."""
        return Counter(self.steps(run))

    def hold(self, run: str, step: str) -> None:
        """Have `step` of `run` stand still from when it begins."""
        self._held(run, step).touch()

    def let_go(self, run: str, step: str) -> None:
        """Let `step` of `run` go on."""
        self._held(run, step).unlink()

    def held(self, run: str, step: str) -> bool:
        """Whether `step` of `run` is to stand still."""
        return self._held(run, step).exists()

    def await_step(self, run: str, step: str, times: int = 1) -> None:
        """Wait until `step` of `run` has begun so many times."""
        until(lambda: self.counts(run)[step] >= times, f"{step!r} of {run!r} to begin ({times}x)")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _held(self, run: str, step: str) -> Path:
        return self._folder / f"{run}.{step}.held"


class State(TypedDict):
    """What a run knows."""

    run: str
    answer: str


Update = dict[str, Any]
"""What a node adds to it."""


def build(saver: Any, journal: Journal, *, pace: float = 0.0, awaited: bool = False) -> Any:
    """draft, ask (which parks), charge, notify.

    Args:
        saver: The checkpointer.
        journal: Where the steps are written down.
        pace: Seconds that each step after the question takes.
        awaited: Whether those steps are coroutines.
    """

    def draft(state: State) -> Update:
        journal.note(state["run"], "draft")
        return {}

    def ask(state: State) -> Update:
        journal.note(state["run"], "ask")
        return {"answer": interrupt("pay?")}

    def effect(step: str) -> Any:
        def node(state: State) -> Update:
            run = state["run"]
            journal.note(run, step)
            journal.note(run, f"{step}: {state['answer']}")
            time.sleep(pace)
            until(lambda: not journal.held(run, step), f"{step!r} of {run!r} to be let go")
            journal.note(run, f"{step} done")
            return {}

        return node

    def awaited_effect(step: str) -> Any:
        async def node(state: State) -> Update:
            run = state["run"]
            journal.note(run, step)
            journal.note(run, f"{step}: {state['answer']}")
            await asyncio.sleep(pace)
            end = time.monotonic() + PATIENCE
            while journal.held(run, step):
                if time.monotonic() > end:
                    raise TimeoutError(f"{step!r} of {run!r} was never let go")
                await asyncio.sleep(POLL)
            journal.note(run, f"{step} done")
            return {}

        return node

    made: Callable[[str], Any] = awaited_effect if awaited else effect
    builder = StateGraph(State)
    builder.add_node("draft", draft)
    builder.add_node("ask", ask)
    builder.add_node("charge", made("charge"))
    builder.add_node("notify", made("notify"))
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "ask")
    builder.add_edge("ask", "charge")
    builder.add_edge("charge", "notify")
    builder.add_edge("notify", END)
    return builder.compile(checkpointer=saver)


def config(run: str, **options: Any) -> Any:
    """The config of `run`."""
    return {"configurable": {"thread_id": run, **options}}
