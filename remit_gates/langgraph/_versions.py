"""The LangGraph releases that can be gated, and where they differ. Whatever is not known
to work is refused with `UnsupportedVersion`, never served ungated."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from remit_gates.errors import MissingExtra, UnsupportedVersion


OLDEST: Final = (1, 0, 0)
NEXT_MAJOR: Final = (2, 0, 0)

ORDINAL_SINCE: Final = (1, 2, 20)
"""From here on an interrupt's id tells the interrupts of one node apart; before, they
share one id. Tried on 1.0.0, 1.2.9, 1.2.16, 1.2.20 and 1.2.24."""

HOOKS: Final = (
    ("langgraph.pregel._loop", "SyncPregelLoop", ("__enter__", "__exit__")),
    ("langgraph.pregel._loop", "AsyncPregelLoop", ("__aenter__", "__aexit__")),
    ("langgraph.pregel._loop", "PregelLoop", ("tick",)),
    ("langgraph.pregel", "Pregel", ("stream", "astream")),
)
"""What is wrapped: module, class, methods."""


def installed() -> tuple[int, int, int]:
    """The installed LangGraph.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: It cannot be gated.
    """
    try:
        text = version("langgraph")
    except PackageNotFoundError:
        raise MissingExtra(
            "LangGraph is not installed. Install it with: pip install 'remit-gates[langgraph]'"
        ) from None
    numbers = [int(part) for part in re.findall(r"\d+", text)[:3]]
    found = (*numbers, 0, 0, 0)[:3]
    if not OLDEST <= found < NEXT_MAJOR:
        raise UnsupportedVersion(
            f"LangGraph {text} is installed, and this release gates 1.0.0 up to, but not"
            " including, 2. Nothing was wrapped. Install a supported LangGraph, or a newer"
            " remit-gates."
        )
    return found[0], found[1], found[2]


def hooked_class(module: str, name: str, methods: tuple[str, ...]) -> type[Any]:
    """The class to wrap, with all that the hooks need.

    Raises:
        UnsupportedVersion: Something is missing.
    """
    cls = getattr(importlib.import_module(module), name, None)
    missing = [method for method in methods if not hasattr(cls, method)]
    if not isinstance(cls, type) or missing:
        raise UnsupportedVersion(
            f"LangGraph {version('langgraph')} has no {module}.{name}"
            f"{'.' + missing[0] if missing and cls else ''}, which the gate hooks into. Nothing"
            " was wrapped. Install a supported LangGraph, or a newer remit-gates."
        )
    return cls
