"""The releases of pydantic-graph and pydantic-ai that can be gated."""

from __future__ import annotations

from typing import Any, Final

from remit_gates._supported import Supported, numbers
from remit_gates.errors import UnsupportedVersion


GRAPH: Final = Supported("pydantic-graph", "pydantic-graph", "pydantic-graph", (0, 8), 2)
"""From 2.0 on it has no persistence. Tried on 0.8.1, 1.0.0, 1.56.0 and 1.107.10."""

AI: Final = Supported("pydantic-ai", "pydantic-ai-slim", "pydantic-ai", (1, 80), 3)
"""1.80 is the first with ordered capabilities. Tried on 1.80.0, 1.107.10, 2.20.0 and 2.68.0."""


GRAPH_HOOKS: Final = ("pydantic_graph.graph", "Graph", ("iter", "iter_from_persistence"))
"""What of pydantic-graph is wrapped: module, class, methods."""

AI_HOOKS: Final = (
    "pydantic_ai.capabilities",
    "AbstractCapability",
    (
        *("get_ordering", "for_run", "before_run", "wrap_run", "before_node_run"),
        *("after_node_run", "wrap_tool_execute", "before_model_request"),
    ),
)
"""The hooks that a capability has to have in pydantic-ai, for else nobody would call ours."""


def graph() -> None:
    """Return only if the installed pydantic-graph can be gated.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: It cannot be gated.
    """
    if not _persists():
        raise UnsupportedVersion(
            f"pydantic-graph {GRAPH.text()} is installed, which has no persistence that could be"
            " gated: that ended with 1.x. Nothing was wrapped. To gate a pydantic-ai agent, pass"
            " ConsumeOnce among its capabilities; for a graph of your own, use AsyncGate."
        )
    GRAPH.installed()


def hooked_graph() -> type[Any]:
    """The class to wrap, with all that the hooks need.

    Raises:
        MissingExtra, UnsupportedVersion: It cannot be wrapped.
    """
    graph()
    return GRAPH.hooked_class(*GRAPH_HOOKS)


def ai() -> None:
    """Return only if agents of the installed pydantic-ai can be gated.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: They cannot be gated.
    """
    AI.installed()
    AI.hooked_class(*AI_HOOKS)


def _persists() -> bool:
    return numbers(GRAPH.text())[0] < GRAPH.next_major


def _looked_at() -> str | None:
    # pydantic-ai 2 brings a pydantic-graph in which there is nothing to gate.
    if not _persists():
        return "has no persistence that could be gated"
    hooked_graph()
    return None


CHECKS: Final = {"pydantic-graph": _looked_at, "pydantic-ai-slim": ai}
"""By distribution, what raises where it cannot be gated, or says why it need not be."""
