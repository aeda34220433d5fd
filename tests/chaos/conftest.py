"""A few processes to be killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.races.workers import Team, team


@pytest.fixture(scope="session")
def all_crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team(tmp_path_factory.mktemp("crew"), 5) as made:
        yield made


@pytest.fixture
def crew(all_crew: Team) -> Iterator[Team]:
    """Five processes, of which a test may kill any."""
    yield all_crew
    all_crew.recover()
