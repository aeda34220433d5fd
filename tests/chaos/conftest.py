"""Databases, and a few processes to be killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.races.workers import Team, team


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of each kind, without tables."""
    # LangGraph's Redis saver works in database 0 only.
    kind = "redis_stack" if request.param == "redis" else request.param
    url: str = request.getfixturevalue(f"{kind}_url")
    return url


@pytest.fixture(scope="session")
def all_crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team(tmp_path_factory.mktemp("crew"), 5) as made:
        yield made


@pytest.fixture
def crew(all_crew: Team) -> Iterator[Team]:
    """Five processes, of which a test may kill any."""
    yield all_crew
    all_crew.recover()
