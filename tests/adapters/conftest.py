"""One table, many savers: a test that asks for `team` runs once on each kind of saver."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.agents import Till
    from tests.adapters.crews import Crew
    from tests.adapters.graphs import Hold, Journal
    from tests.adapters.kinds import Places
    from tests.adapters.rivals import Rivals
    from tests.adapters.snapshots import Place
    from tests.adapters.workers import Team
    from tests.journal import Journal as Diary
    from tests.redis_servers import Server
    from tests.servers import Postgres

collect_ignore_glob: list[str] = []

if importlib.util.find_spec("langgraph") is None:
    collect_ignore_glob += ["test_langgraph_*.py", "test_peer_conformance.py"]

REDIS = importlib.util.find_spec("redis") is not None
"""Whether LangGraph's Redis savers are here; there are none for its oldest releases."""

if not REDIS:
    collect_ignore_glob += ["test_langgraph_redis.py"]

if importlib.util.find_spec("crewai") is None:
    collect_ignore_glob += ["test_crewai_*.py"]

if (
    importlib.util.find_spec("pydantic_graph") is None
    or importlib.util.find_spec("pydantic_graph.persistence") is None
):
    # Persistence ended with 1.x.
    collect_ignore_glob += ["test_pydantic_graph_*.py"]

if importlib.util.find_spec("pydantic_ai") is None:
    collect_ignore_glob += ["test_pydantic_ai_*.py"]

if importlib.util.find_spec("dbos") is None:
    # They are run in an environment of their own: tools/releases.py.
    collect_ignore_glob += ["test_pydantic_ai_durable.py"]

NO_RUN = "this release has capabilities of an agent, and none of a run"

EVERY = (
    "memory",
    "memory-async",
    "sqlite",
    "sqlite-async",
    "postgres",
    "postgres-pool",
    "postgres-async",
    "postgres-async-pool",
    "redis",
    "redis-async",
    "foreign",
    "foreign-async",
)


CANNOT = "before LangGraph"
"""How the reason of a test begins that an older release of LangGraph cannot run."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "newest: needs the newest LangGraph and its companions")
    config.addinivalue_line("markers", "ordinal: needs interrupt ids that tell a node's apart")
    config.addinivalue_line("markers", "kinds(*names): the kinds of saver to run on; else every")
    # LangGraph 1.0.0 warns of an import of its own.
    moved = "ignore:AgentStatePydantic has been moved:DeprecationWarning"
    config.addinivalue_line("filterwarnings", moved)


def pytest_pycollect_makemodule(module_path: Path) -> None:
    if module_path.name.startswith("test_crewai_"):
        from tests.adapters.hermetic import load

        load()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("ordinal"):
            from remit_gates.langgraph._versions import ORDINAL_SINCE, installed

            since = ".".join(map(str, ORDINAL_SINCE))
            reason = f"{CANNOT} {since} the questions of one node share one id"
            item.add_marker(pytest.mark.skipif(installed() < ORDINAL_SINCE, reason=reason))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "team" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("kinds")
        kinds = mark.args if mark else EVERY
        here = [kind for kind in kinds if REDIS or not kind.startswith("redis")]
        metafunc.parametrize("team", here, indirect=True)


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Places:
    """Where the savers of the session keep things. A server starts when it is first used."""
    from tests.adapters.kinds import Places

    @functools.cache
    def postgres(name: str = "") -> str:
        server: Postgres = request.getfixturevalue("postgres")
        return server.create()

    def redis() -> str:
        # RediSearch knows database 0 only; threads of their own keep tests apart.
        server: Server = request.getfixturevalue("redis_server")
        return server.url()

    return Places(tmp_path_factory.mktemp("places"), postgres, redis)


@pytest.fixture(scope="session")
def ready() -> set[str]:
    """The kinds of saver whose tables have been made."""
    return set()


@pytest.fixture
def team(request: pytest.FixtureRequest, places: Places, ready: set[str]) -> Iterator[Team]:
    """Makes workers of one kind of saver."""
    from tests.adapters.workers import Team

    with contextlib.ExitStack() as stack:
        team = Team(request.param, places, stack)
        if request.param not in ready and not request.param.startswith("fresh"):
            team.setup()
            ready.add(request.param)
        yield team


@pytest.fixture
def journal() -> Journal:
    """What the nodes of a test did."""
    from tests.adapters.graphs import Journal

    return Journal()


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Where a node of a test stands still. It goes on at the latest when the test ends."""
    from tests.adapters.graphs import Hold

    hold = Hold()
    yield hold
    hold.open()


@pytest.fixture(scope="session")
def diary(tmp_path_factory: pytest.TempPathFactory) -> Diary:
    """What the methods of CrewAI flows did, in every process of the session."""
    from tests.adapters import flows
    from tests.journal import Journal

    journal = Journal(tmp_path_factory.mktemp("diary"))
    flows.current.append(journal)
    return journal


@pytest.fixture(scope="session")
def crews(diary: Diary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """The worker processes of the session, with CrewAI."""
    from tests.adapters.crews import crew_in

    with crew_in(diary.folder) as crew:
        yield crew


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A fresh SQLite database for a flow persistence."""
    return str(tmp_path / "flows.db")


@pytest.fixture(scope="session")
def rivals() -> Iterator[Rivals]:
    """Processes that race on a run of pydantic-graph."""
    from tests.adapters.rivals import rivals

    with rivals("tests.adapters.snapshots") as made:
        yield made


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a run of pydantic-graph waits, in the kind of persistence that is asked for."""
    from tests.adapters.snapshots import park

    kind = request.param
    url = request.getfixturevalue(f"{kind}_url") if kind in ("sqlite", "postgres") else ""
    return park(kind, tmp_path, url)


@pytest.fixture
def till(tmp_path: Path) -> Till:
    """Where an agent writes down what it does."""
    from tests.adapters.agents import Till

    return Till(tmp_path / "journal")
