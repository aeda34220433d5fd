"""The databases to race on, and eight processes that last for all of the races."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.races.cells import RACERS
from tests.races.workers import Team, team


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of each kind."""
    # LangGraph's Redis saver works in database 0 only.
    kind = "redis_stack" if request.param == "redis" else request.param
    url: str = request.getfixturevalue(f"{kind}_url")
    return url


@pytest.fixture(scope="session")
def all_racers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team(tmp_path_factory.mktemp("racers"), RACERS) as made:
        yield made


@pytest.fixture
def racers(all_racers: Team) -> Iterator[Team]:
    """Eight processes."""
    yield all_racers
    all_racers.recover()
