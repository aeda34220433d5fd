"""A graph whose every step is written down in a journal outside of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from tests.journal import Journal
from tests.waiting import PATIENCE, POLL


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
            journal.stand(run, step)
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
