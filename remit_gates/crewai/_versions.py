"""The CrewAI releases that can be gated. Whatever is not known to work is refused with
`UnsupportedVersion`, never served ungated."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from remit_gates.errors import MissingExtra, UnsupportedVersion


OLDEST: Final = (1, 15, 2)
NEXT_MAJOR: Final = (2, 0, 0)

HOOKED: Final = (
    "resume",
    "resume_async",
    "kickoff_async",
    "from_pending",
    "from_checkpoint",
    "fork",
)
"""The methods of `Flow` that are wrapped."""

NEEDED: Final = ("_pending_feedback_context",)
"""What else of a `Flow` the gate relies on: its private attributes."""


def installed() -> tuple[int, int, int]:
    """The installed CrewAI.

    Raises:
        MissingExtra: There is none.
        UnsupportedVersion: It cannot be gated.
    """
    try:
        text = version("crewai")
    except PackageNotFoundError:
        raise MissingExtra(
            "CrewAI is not installed. Install it with: pip install 'remit-gates[crewai]'"
        ) from None
    numbers = [int(part) for part in re.findall(r"\d+", text)[:3]]
    found = (*numbers, 0, 0, 0)[:3]
    if not OLDEST <= found < NEXT_MAJOR:
        raise UnsupportedVersion(
            f"CrewAI {text} is installed, and this release gates 1.15.2 up to, but not"
            " including, 2. Nothing was wrapped. Install a supported CrewAI, or a newer"
            " remit-gates."
        )
    return found[0], found[1], found[2]


def hooked_class() -> type[Any]:
    """The class to wrap, with all that the hooks need.

    Raises:
        UnsupportedVersion: Something is missing.
    """
    # The engine's class, below the public one: every flow runs its methods.
    cls = getattr(importlib.import_module("crewai.flow.runtime"), "Flow", None)
    missing = [name for name in HOOKED if not hasattr(cls, name)]
    private = getattr(cls, "__private_attributes__", {})
    missing += [name for name in NEEDED if name not in private]
    if not isinstance(cls, type) or missing:
        raise UnsupportedVersion(
            f"CrewAI {version('crewai')} has no crewai.flow.runtime.Flow"
            f"{'.' + missing[0] if missing and cls else ''}, which the gate hooks into. Nothing"
            " was wrapped. Install a supported CrewAI, or a newer remit-gates."
        )
    return cls
