"""The CrewAI releases that can be gated, and what of them is wrapped."""

from __future__ import annotations

from typing import Any, Final

from remit_gates._supported import Supported


CREWAI: Final = Supported("CrewAI", "crewai", "crewai", (1, 15, 2), 2)

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


def hooked() -> type[Any]:
    """The class to wrap, with all that the hooks need.

    Raises:
        MissingExtra, UnsupportedVersion: It cannot be wrapped.
    """
    CREWAI.installed()
    # The engine's class, below the public one: every flow runs its methods.
    return CREWAI.hooked_class("crewai.flow.runtime", "Flow", HOOKED, NEEDED)


CHECKS: Final = {"crewai": hooked}
"""By distribution, what raises where it cannot be gated."""
