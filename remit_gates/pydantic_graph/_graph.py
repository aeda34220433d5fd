"""The hook: a run of a graph on a gated persistence gets a view of its own, and its claim is
given back when the run is left. That is what tells a parked run from one in progress."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import wrapt

from remit_gates.pydantic_graph._versions import GRAPH_HOOKS, hooked_graph


def install() -> None:
    """Wrap pydantic-graph's graphs, once a process. Runs on other persistences go straight
    through.

    Raises:
        MissingExtra, UnsupportedVersion: They cannot be wrapped. Nothing was.
    """
    with _lock:
        if not _installed:
            cls = hooked_graph()
            for name, wrapper in zip(GRAPH_HOOKS[2], (_iter, _iter_from), strict=True):
                wrapt.wrap_function_wrapper(cls, name, wrapper)
            _installed.append(True)


_lock: Final = threading.Lock()
_installed: Final[list[bool]] = []


def gated(persistence: Any) -> bool:
    """Whether `persistence` came from `gate()`."""
    return hasattr(type(persistence), "_remit_view")


def _iter(wrapped: Callable[..., Any], graph: Any, args: Any, kwargs: Any) -> Any:
    persistence = kwargs.get("persistence")
    if not gated(persistence):
        return wrapped(*args, **kwargs)
    node = args[0] if args else kwargs.get("start_node")
    view = persistence._remit_view(node, kwargs.get("state"))
    return _viewed(wrapped, persistence, view, args, kwargs)


def _iter_from(wrapped: Callable[..., Any], graph: Any, args: Any, kwargs: Any) -> Any:
    persistence = args[0] if args else kwargs.get("persistence")
    if not gated(persistence):
        return wrapped(*args, **kwargs)
    return _viewed(wrapped, persistence, persistence._remit_view(), args[1:], kwargs)


@asynccontextmanager
async def _viewed(
    wrapped: Callable[..., Any], persistence: Any, view: Any, args: Any, kwargs: Any
) -> AsyncIterator[Any]:
    try:
        async with wrapped(*args, **{**kwargs, "persistence": view}) as run:
            try:
                yield run
            finally:
                # Whoever goes on with the run after this goes on as anybody would.
                run.persistence = persistence
    finally:
        await view._self_access.leave()
