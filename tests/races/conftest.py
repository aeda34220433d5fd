"""Eight processes that last for all of the races."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.races.cells import RACERS
from tests.races.workers import Team, team


@pytest.fixture(scope="session")
def all_racers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team(tmp_path_factory.mktemp("racers"), RACERS) as made:
        yield made


@pytest.fixture
def racers(all_racers: Team) -> Iterator[Team]:
    """Eight processes."""
    yield all_racers
    all_racers.recover()
