"""The LangGraph releases that can be gated, where they differ, and what of them is wrapped."""

from __future__ import annotations

from typing import Any, Final

from remit_gates._supported import Supported


LANGGRAPH: Final = Supported("LangGraph", "langgraph", "langgraph", (1, 0, 0), 2)

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

installed = LANGGRAPH.installed
hooked_class = LANGGRAPH.hooked_class


def hooked() -> list[type[Any]]:
    """The classes to wrap, in the order of `HOOKS`.

    Raises:
        MissingExtra, UnsupportedVersion: They cannot all be wrapped.
    """
    installed()
    return [hooked_class(*hook) for hook in HOOKS]


CHECKS: Final = {"langgraph": hooked}
"""By distribution, what raises where it cannot be gated."""
