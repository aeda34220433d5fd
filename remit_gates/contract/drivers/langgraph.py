"""LangGraph: a thread is a run, `interrupt()` is a question, `invoke(None)` goes on.

A delivery is a bare `Command(resume=...)` on the thread, as LangGraph's guides write it. A
delivery that names its pause carries the checkpoint that was shown, and a fork is exactly
that call; gated, a fork says so.
"""

from __future__ import annotations

import importlib
import operator
import os
import platform
import sqlite3
import threading
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from remit_gates.contract.drivers._kit import Order, main


_shared: dict[str, Any] = {}
_lock = threading.Lock()


class State(BaseModel):
    """The schema, as strict as LangGraph lets one be."""

    value: str | None = None
    total: int = 0
    done: Annotated[list[str], operator.add] = []


class LangGraph:
    """One order on one thread."""

    def __init__(self, order: Order) -> None:
        self._order = order
        if order.verb == "describe":
            return
        self._saver = _saver(order)
        self._graph = self._compiled()

    def describe(self) -> dict[str, Any]:
        packages = {
            name: metadata.version(name)
            for name in ("langgraph", "langgraph-checkpoint", *_SAVERS.get(self._order.backend, ()))
        }
        return {
            "framework": "langgraph",
            "version": packages["langgraph"],
            "packages": packages,
            "python": platform.python_version(),
        }

    def setup(self) -> None:
        if hasattr(self._saver, "setup"):
            self._saver.setup()

    def start(self) -> dict[str, Any]:
        return self._invoke({"value": None, "total": 0, "done": []})

    def answer(self) -> dict[str, Any]:
        at = self._order.handle if self._order.bound else None
        return self._invoke(Command(resume=self._order.value), self._config(at))

    def go_on(self) -> dict[str, Any]:
        return self._invoke(None)

    def fork(self) -> dict[str, Any]:
        config = self._config(self._order.handle)
        if self._order.gated:
            config["configurable"]["remit_fork"] = True
        return self._invoke(Command(resume=self._order.value), config)

    def edit_invalid(self) -> dict[str, Any]:
        self._graph.update_state(self._thread(), {"total": "lots"})
        return {"status": "edited"}

    def state(self) -> dict[str, Any]:
        raw = self._saver.get_tuple(self._thread())
        values = {} if raw is None else raw.checkpoint["channel_values"]
        if not isinstance(values.get("total", 0), int):
            # LangGraph itself may be unable to show what it has persisted.
            return {"status": "unfinished", "asks": [], "done": [], "valid": False, "handle": None}
        found = self._graph.get_state(self._thread())
        asks = [ask.value for task in found.tasks for ask in task.interrupts]
        status = "parked" if asks else "unfinished" if found.next else "finished"
        return {
            "status": status if found.created_at else "absent",
            "asks": asks,
            "done": sorted(set(values.get("done", []))),
            "valid": True,
            "handle": found.config["configurable"].get("checkpoint_id"),
        }

    def _thread(self) -> Any:
        return {"configurable": {"thread_id": self._order.run}}

    def _config(self, at: str | None = None) -> Any:
        config = self._thread()
        if at is not None:
            config["configurable"]["checkpoint_id"] = at
        if self._order.gated and self._order.delivery:
            config["configurable"]["remit_delivery"] = self._order.delivery
        return config

    def _invoke(self, given: Any, config: Any = None) -> dict[str, Any]:
        how = {
            name: self._order.options[name]
            for name in ("durability",)
            if name in self._order.options
        }
        self._graph.invoke(given, config or self._config(), **how)
        return self.state()

    def _compiled(self) -> Any:
        builder: Any = StateGraph(State)
        before = [START]
        for stage in self._order.stages:
            for step in stage:
                builder.add_node(step, _node(self._order, step))
                if len(before) == 1:
                    builder.add_edge(before[0], step)
                else:
                    builder.add_edge(before, step)
            before = list(stage)
        for step in before:
            builder.add_edge(step, END)
        return builder.compile(checkpointer=self._saver)


def _node(order: Order, step: str) -> Callable[[State], dict[str, Any]]:
    def ask(state: State) -> dict[str, Any]:
        value = interrupt(step)
        order.took(step, value)
        return {"value": value, "done": [step]}

    def act(state: State) -> dict[str, Any]:
        order.step(step, state.value)
        return {"done": [step], **({"total": "lots"} if step == "bad" else {})}

    return ask if step.startswith("ask") else act


_SAVERS = {
    "sqlite": ("langgraph-checkpoint-sqlite",),
    "postgres": ("langgraph-checkpoint-postgres", "psycopg"),
    "redis": ("langgraph-checkpoint-redis", "redis"),
}


def _saver(order: Order) -> Any:
    """The saver, gated or not; of what is in memory, the same one for all orders."""
    if order.backend != "memory":
        return _gated(order, _stock(order))
    with _lock:
        if "saver" not in _shared:
            _shared["saver"] = _gated(order, _stock(order))
        return _shared["saver"]


def _stock(order: Order) -> Any:
    make = order.options.get("target")
    if make:
        module, _, name = make.partition(":")
        return getattr(importlib.import_module(module), name)()
    if order.backend == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        return InMemorySaver()
    if order.backend == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        path = os.path.join(order.folder, "checkpoints.db")  # noqa: PTH118 -- no Path needed
        return SqliteSaver(sqlite3.connect(path, timeout=30.0, check_same_thread=False))
    if order.backend == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg import Connection
        from psycopg.rows import dict_row

        connect: Any = Connection.connect
        connection = connect(
            str(order.url), autocommit=True, prepare_threshold=None, row_factory=dict_row
        )
        return PostgresSaver(connection)
    if order.backend == "redis":
        from langgraph.checkpoint.redis import RedisSaver

        saver = RedisSaver(str(order.url))
        # Each one has to be set up, whether or not its indexes are there.
        saver.setup()
        return saver
    raise ValueError(f"the LangGraph driver knows no backend {order.backend!r}")


def _gated(order: Order, saver: Any) -> Any:
    if not order.gated:
        return saver
    from remit_gates.langgraph import gate

    return gate(saver, validate=State)


if __name__ == "__main__":
    main(LangGraph)
