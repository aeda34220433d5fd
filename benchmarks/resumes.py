"""What one resume costs with a gate and without, measured in turns in one process, so that
whatever else the machine does falls on both alike."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from benchmarks.bare import Bare, bare
from benchmarks.turns import timed, turns
from tests.races.savers import saver, wrapper


Times = dict[str, list[float]]
"""Seconds, by what was measured."""


class State(TypedDict, total=False):
    answer: str


def measure(url: str, wrap: str, count: int, block: int) -> dict[str, float]:
    """Median milliseconds of each call at `url`: stock, gated by `wrap`, and stock between the
    bare statements of a gate; and what the store's part of it is."""
    times: Times = defaultdict(list)
    with (
        saver(url, lambda made: made) as stock,
        _store_of(stock, wrap, times) as store,
        bare(url) as statements,
    ):
        gated = wrapper(wrap, store=store)(stock)
        gated.setup()
        ungated = _graph(stock)
        graphs = {"stock": ungated, wrap: _graph(gated), "bare": ungated}
        runs = []
        for name, number in turns(graphs, count, times.clear, block):
            run = f"{name}-{number}"
            if name == "bare":
                _between(graphs[name], statements, run, times)
            else:
                _one_run(graphs[name], name, run, times)
                runs.append((name, run))
            # In turns as well: a commit in a loop of commits finds every cache warm.
            with timed(times, "commit"):
                statements.claim(str(number))
        # Apart, since what a refusal leaves to be cleared away would be the next resume's.
        for name, run in runs:
            _looked_at_and_answered_again(graphs[name], name, run, times)
        if wrap == "gate":
            _claims(store, times, count)
    return {name: statistics.median(values) * 1000 for name, values in times.items()}


def _one_run(graph: Any, name: str, run: str, times: Times) -> None:
    config = {"configurable": {"thread_id": run}}
    with timed(times, f"{name}: new input"):
        graph.invoke({}, config)
    with _parts(times, name), timed(times, f"{name}: resume"):
        graph.invoke(Command(resume="yes"), config)


def _looked_at_and_answered_again(graph: Any, name: str, run: str, times: Times) -> None:
    config = {"configurable": {"thread_id": run}}
    with timed(times, f"{name}: get_state"):
        graph.get_state(config)
    # A duplicate: whether it is refused is its gate's business.
    with timed(times, f"{name}: late duplicate"), suppress(Exception):
        graph.invoke(Command(resume="yes"), config)


def _between(graph: Any, statements: Bare, run: str, times: Times) -> None:
    config = {"configurable": {"thread_id": run}}
    graph.invoke({}, config)
    with timed(times, "bare: resume"):
        statements.read(run)
        statements.claim(run)
        graph.invoke(Command(resume="yes"), config)
        statements.settle(run)


def _claims(store: Any, times: Times, count: int) -> None:
    """The gate without a framework, and a call that finds the run held."""
    from remit_gates import Gate, ResumeRefused

    passages = Gate(store)
    for number in range(count):
        with timed(times, "claim and settle"), passages.passage(f"run-{number}", "p", "yes"):
            pass
    with passages.passage("held", "p"):
        for _ in range(count):
            refused = passages.passage("held", "p")
            with timed(times, "refused: in progress"), suppress(ResumeRefused), refused:
                pass


@contextmanager
def _store_of(stock: Any, wrap: str, times: Times) -> Iterator[Any]:
    """The gate's own store beside `stock`, with a stopwatch on each operation."""
    if wrap != "gate":
        yield None
        return
    from remit_gates.stores import as_store

    with closing(as_store(getattr(stock, "conn", None) or stock._redis)) as store:
        for name in ("read", "swap", "renew"):
            setattr(store, name, _watched(getattr(store, name), name, times))
        store.setup()
        yield store


def _watched(call: Callable[..., Any], name: str, times: Times) -> Callable[..., Any]:
    def watched(*args: Any) -> Any:
        kind = name
        if name == "swap":
            kind = "swap to claim" if args[-1] else "swap to settle"
        with timed(times, f"store: {kind}"):
            return call(*args)

    return watched


@contextmanager
def _parts(times: Times, name: str) -> Iterator[None]:
    """Counts what the store was asked for during a resume."""
    before = sum(len(values) for key, values in times.items() if key.startswith("store: "))
    yield
    after = sum(len(values) for key, values in times.items() if key.startswith("store: "))
    times[f"{name}: statements / 1000"].append((after - before) / 1000)


def _graph(checkpointer: Any) -> Any:
    def ask(state: State) -> State:
        return {"answer": interrupt("pay?")}

    def act(state: State) -> State:
        return {}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("act", act)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "act")
    return builder.compile(checkpointer=checkpointer)
