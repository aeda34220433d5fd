"""The releases of pydantic-graph and pydantic-ai that can be gated."""

from __future__ import annotations

from typing import Final

from remit_gates._supported import Supported, numbers
from remit_gates.errors import UnsupportedVersion, UsageError


GRAPH: Final = Supported("pydantic-graph", "pydantic-graph", "pydantic-graph", (0, 8), 2)
"""From 2.0 on it has no persistence. Tried on 0.8.1, 1.0.0, 1.56.0 and 1.107.10."""

AI: Final = Supported("pydantic-ai", "pydantic-ai-slim", "pydantic-ai", (1, 80), 3)
"""1.80 is the first with ordered capabilities. Tried on 1.80.0, 1.107.10, 2.20.0 and 2.68.0."""


def graph() -> None:
    """Return only if the installed pydantic-graph can be gated.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: It cannot be gated.
    """
    text = GRAPH.text()
    if numbers(text)[0] >= GRAPH.next_major:
        raise UnsupportedVersion(
            f"pydantic-graph {text} is installed, which has no persistence that could be gated:"
            " that ended with 1.x. Nothing was wrapped. To gate a pydantic-ai agent, pass"
            " ConsumeOnce among its capabilities; for a graph of your own, use AsyncGate."
        )
    GRAPH.installed()


def ai() -> None:
    """Return only if agents of the installed pydantic-ai can be gated.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: They cannot be gated.
    """
    AI.installed()


def installed() -> None:
    """Return only if something that is installed here can be gated.

    Raises:
        MissingExtra, UnsupportedVersion: Nothing can.
    """
    try:
        graph()
    except UsageError:
        ai()
