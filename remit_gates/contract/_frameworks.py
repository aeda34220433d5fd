"""Which frameworks can be measured, what their environments need, and where they keep runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from remit_gates.errors import UsageError


# What the adapters import besides their framework.
GATE: Final = "wrapt>=1.16,<3"


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework.

    Attributes:
        name: Its name on the package index, and on the command line.
        driver: The module that drives it.
        backends: Where it can keep runs, and the packages that each needs.
        usual: The backends that are measured when none is named: those that need no server.
        one_process: The backends that live in the memory of a process.
        asked: The backends whose packages are installed only if they are asked for.
        forks: Whether it bears a fork after its import.
        extras: Packages that its driver needs besides.
        package: What is installed, if it is not called as the framework is.
    """

    name: str
    driver: str
    backends: Mapping[str, tuple[str, ...]]
    usual: tuple[str, ...]
    one_process: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    forks: bool = True
    extras: tuple[str, ...] = ()
    package: str = ""

    @property
    def shared(self) -> list[str]:
        """The backends that processes share, of those that every environment is made for."""
        return [each for each in self.backends if each not in self.one_process | self.asked]


FRAMEWORKS: Final[Mapping[str, Framework]] = {
    each.name: each
    for each in (
        Framework(
            "reference",
            "remit_gates.contract.drivers.reference",
            {"file": ()},
            ("file",),
        ),
        Framework(
            "langgraph",
            "remit_gates.contract.drivers.langgraph",
            {
                "memory": (),
                "sqlite": ("langgraph-checkpoint-sqlite",),
                "postgres": ("langgraph-checkpoint-postgres", "psycopg[binary]>=3.2.2"),
                "redis": ("langgraph-checkpoint-redis>=0.5", "redis>=5.2.1"),
            },
            ("memory", "sqlite"),
            one_process=frozenset({"memory"}),
            # Not every release of the framework has a saver for it.
            asked=frozenset({"redis"}),
            extras=("pydantic>=2",),
        ),
        Framework(
            "crewai",
            "remit_gates.contract.drivers.crewai",
            {"sqlite": ()},
            ("sqlite",),
        ),
        Framework(
            "autogen-agentchat",
            "remit_gates.contract.drivers.autogen_agentchat",
            {"file": ()},
            ("file",),
        ),
        Framework(
            "llama-index-workflows",
            "remit_gates.contract.drivers.llama_index_workflows",
            {"file": ()},
            ("file",),
        ),
        Framework(
            "pydantic-ai",
            "remit_gates.contract.drivers.pydantic_ai",
            {"file": ()},
            ("file",),
            # The same, without the clients of every maker of models.
            package="pydantic-ai-slim",
        ),
        Framework(
            "pydantic-graph",
            "remit_gates.contract.drivers.pydantic_graph",
            {"file": ()},
            ("file",),
        ),
    )
}


def framework(requirement: str) -> Framework:
    """The framework that `requirement`, such as `langgraph==1.2.9`, is about.

    Raises:
        UsageError: There is no driver for it.
    """
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
    if name not in FRAMEWORKS:
        raise UsageError(
            f"There is no driver for {requirement!r}. There are drivers for:"
            f" {', '.join(sorted(FRAMEWORKS))}. Nothing was measured."
        )
    return FRAMEWORKS[name]


def requirements(about: Framework, requirement: str, wanted: Iterable[str] = ()) -> tuple[str, ...]:
    """All that an environment for `requirement` needs, that itself first.

    Args:
        about: The framework.
        requirement: Which release of it.
        wanted: The backends that are asked for.
    """
    kept = [name for name in about.backends if name not in about.asked or name in wanted]
    backends = [package for name in kept for package in about.backends[name]]
    if about.package:
        requirement = about.package + requirement[len(about.name) :]
    return (requirement, GATE, *about.extras, *dict.fromkeys(backends))
