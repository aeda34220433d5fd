"""The releases of pydantic-graph and pydantic-ai that can be gated, and where they differ.
Whatever is not known to work is refused with `UnsupportedVersion`, never served ungated."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from remit_gates.errors import MissingExtra, UnsupportedVersion, UsageError


GRAPH_OLDEST: Final = (0, 8)
GRAPH_NEXT: Final = (2, 0)
"""From 2.0 on pydantic-graph has no persistence. Tried on 0.8.1, 1.0.0, 1.56.0 and 1.107.10."""

AI_OLDEST: Final = (1, 80)
AI_NEXT: Final = (3, 0)
"""1.80 is the first with ordered capabilities. Tried on 1.107.10, 2.20.0 and 2.68.0."""


def graph() -> None:
    """Return only if the installed pydantic-graph can be gated.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: It cannot be gated.
    """
    found, text = _installed("pydantic-graph", "pydantic-graph")
    if found >= GRAPH_NEXT:
        raise UnsupportedVersion(
            f"pydantic-graph {text} is installed, which has no persistence that could be gated:"
            " that ended with 1.x. Nothing was wrapped. To gate a pydantic-ai agent, pass"
            " ConsumeOnce among its capabilities; for a graph of your own, use AsyncGate."
        )
    if found < GRAPH_OLDEST:
        raise UnsupportedVersion(
            f"pydantic-graph {text} is installed, and this release gates 0.8 up to, but not"
            " including, 2. Nothing was wrapped. Install a supported pydantic-graph."
        )


def ai() -> None:
    """Return only if agents of the installed pydantic-ai can be gated.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: They cannot be gated.
    """
    found, text = _installed("pydantic-ai-slim", "pydantic-ai")
    if not AI_OLDEST <= found < AI_NEXT:
        raise UnsupportedVersion(
            f"pydantic-ai {text} is installed, and this release gates 1.80 up to, but not"
            " including, 3. Nothing was gated. Install a supported pydantic-ai, or a newer"
            " remit-gates."
        )


def installed() -> None:
    """Return only if something that is installed here can be gated.

    Raises:
        MissingExtra, UnsupportedVersion: Nothing can.
    """
    try:
        graph()
    except UsageError:
        ai()


def _installed(package: str, extra: str) -> tuple[tuple[int, ...], str]:
    try:
        text = version(package)
    except PackageNotFoundError:
        raise MissingExtra(
            f"{package} is not installed. Install it with: pip install 'remit-gates[{extra}]'"
        ) from None
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2]), text
