"""Graphs for tests, made of nodes that write into a journal what they do.

A node's name in the journal is one entry of the node; its name with a `!` is its effect,
which is what must happen once.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from tests.waiting import PATIENCE


class State(TypedDict, total=False):
    """What the nodes of a run found, in order."""

    log: Annotated[list[str], operator.add]


Node = Any
"""What LangGraph takes for a node; it has a dozen types for it."""


class Journal:
    """What happened, in order, from whatever thread."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, line: str) -> None:
        with self._lock:
            self.lines.append(line)

    def count(self, line: str) -> int:
        return self.lines.count(line)


class Hold:
    """A place in a node where it stands still until the test lets it go on."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def __call__(self) -> None:
        self._reached.set()
        assert self._open.wait(PATIENCE), "the test never opened the hold"

    def reached(self) -> None:
        """Wait until a node stands here."""
        assert self._reached.wait(PATIENCE), "no node ever came to the hold"

    def open(self) -> None:
        self._open.set()


def asks(
    journal: Journal, name: str, *questions: str, then: Callable[[], Any] | None = None
) -> Node:
    """A node that asks `questions` one after the other, then has its effect."""

    def node(state: Any) -> Any:
        journal(name)
        answers = [interrupt(question) for question in questions]
        if then is not None:
            then()
        journal(f"{name}!")
        return {"log": [f"{name}={'+'.join(map(str, answers))}"]}

    return node


def does(journal: Journal, name: str, then: Callable[[], Any] | None = None) -> Node:
    """A node that asks nothing."""
    return asks(journal, name, then=then)


def chain(**nodes: Any) -> Any:
    """`nodes`, one after the other."""
    builder: Any = StateGraph(State)
    names = [*nodes]
    for name, node in nodes.items():
        builder.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return builder


def beside(join: Node, **nodes: Any) -> Any:
    """`nodes`, all at once, then `join`."""
    builder: Any = StateGraph(State)
    builder.add_node("join", join)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    builder.add_edge([*nodes], "join")
    builder.add_edge("join", END)
    return builder


def approval(journal: Journal, then: Callable[[], Any] | None = None) -> Any:
    """The smallest gated graph: a node that asks and has an effect, and one after it."""
    return chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after", then))


class Boom(Exception):
    """What a node of these tests raises."""


def failing(times: int = 1) -> Callable[[], None]:
    """A function that raises the first so many times."""
    left = [times]

    def fail() -> None:
        if left[0] > 0:
            left[0] -= 1
            raise Boom

    return fail


def places(journal: Journal, place: str, times: int = 1) -> Any:
    """A graph that fails in the node that asks, or in the one after, or within a subgraph."""
    then = failing(times)
    after = does(journal, "after", then if place == "after" else None)
    if place == "inner":
        inner = chain(ask=asks(journal, "ask", "sure?", then=then)).compile()
        return chain(outer=inner, after=after)
    return chain(
        ask=asks(journal, "ask", "sure?", then=then if place == "ask" else None), after=after
    )
