"""A gate that has served a hundred thousand runs holds no more than one that served one."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel._loop import PregelLoop
from langgraph.types import Command, interrupt

from remit_gates import AlreadyConsumed, Gate, InProgress
from remit_gates._heartbeat import HEARTBEAT
from remit_gates._model import RunKey
from remit_gates.langgraph import gate
from remit_gates.stores.memory import MemoryStore
from tests.garbage import uncollected
from tests.jobs import forget_all
from tests.races.graph import State, Update, config


RUNS = 100_000
GRAPH_RUNS = 2_000


@pytest.fixture(autouse=True)
def alone() -> None:
    """What another test has left to be done would be counted, whenever it is done."""
    forget_all()


def ours() -> Counter[str]:
    """How many objects of this project's classes there are."""
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    return Counter({str(kind): count for kind, count in kinds.items() if _ours(kind)})


def _ours(kind: type) -> bool:
    # The class of a class may describe its module instead of naming it.
    return str(kind.__module__).startswith("remit_gates")


def containers(*roots: Any) -> int:
    """Bytes of the containers that are reached from `roots` through our own attributes."""
    seen: set[int] = set()
    total, left = 0, list(roots)
    while left:
        thing = left.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            left += [*thing.values()]
            total += sys.getsizeof(thing)
        elif isinstance(thing, (list, set, tuple)):
            left += [*thing]
            total += sys.getsizeof(thing)
        elif _ours(type(thing)):
            left += [getattr(thing, name) for name in getattr(type(thing), "__slots__", ())]
            left.append(getattr(thing, "__dict__", {}))
    return total


@pytest.mark.timeout(300)
def test_a_gate_keeps_nothing_of_a_run_that_ended() -> None:
    store = MemoryStore()
    passages = Gate(store)

    def one(number: int) -> None:
        run = f"run-{number}"
        with passages.passage(run, "p", number, delivery=run):
            if number % 100 == 0:
                with pytest.raises(InProgress), passages.passage(run, "p"):
                    pass
        store.delete(RunKey("gate", "", run))

    for number in range(100):
        one(number)
    objects, size = ours(), containers(passages, store, HEARTBEAT)
    for number in range(100, RUNS):
        one(number)
    assert ours() == objects
    assert containers(passages, store, HEARTBEAT) <= size
    assert len(HEARTBEAT) == 0


def asking(saver: Any) -> Any:
    """A graph that asks once, on `saver`."""

    def ask(state: State) -> Update:
        return {"answer": interrupt("pay?")}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_a_run_leaves_no_more_to_be_collected_than_without_a_gate(*, awaited: bool) -> None:
    def deliver(graph: Any, asked: Any, error: type[Exception] | None = None) -> None:
        # What leaves `asyncio.run` by an error is kept by the task that it ended, so that the
        # error is seen within.
        async def adeliver() -> None:
            with nullcontext() if error is None else pytest.raises(error):
                await graph.ainvoke(asked, config("t"))

        if awaited:
            asyncio.run(adeliver())
            return
        with nullcontext() if error is None else pytest.raises(error):
            graph.invoke(asked, config("t"))

    stock, gated = asking(InMemorySaver()), asking(gate(InMemorySaver()))
    left = []
    for graph in (stock, gated):
        deliver(graph, {"run": "t"})
        with uncollected(PregelLoop) as loops:
            deliver(graph, Command(resume="yes"))
            left.append(loops())
    with uncollected(PregelLoop) as loops:
        deliver(gated, Command(resume="yes"), AlreadyConsumed)
        left.append(loops())
    assert left == left[:1] * 3


def test_a_gated_saver_keeps_nothing_of_a_thread_that_was_deleted() -> None:
    saver = gate(InMemorySaver())
    graph = asking(saver)

    def one(number: int) -> None:
        run = f"run-{number}"
        graph.invoke({"run": run}, config(run))
        assert graph.invoke(Command(resume="yes"), config(run))["answer"] == "yes"
        saver.delete_thread(run)

    for number in range(50):
        one(number)
    objects, size = ours(), containers(saver, HEARTBEAT)
    for number in range(50, GRAPH_RUNS):
        one(number)
    assert ours() == objects
    assert containers(saver, HEARTBEAT) <= size
