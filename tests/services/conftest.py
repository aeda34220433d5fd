"""The example service, started once for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.servers import Postgres
    from tests.services.running import Service


@pytest.fixture(scope="session")
def service(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service on a database of its own, with no cases to begin with."""
    from tests.services.running import running

    folder = tmp_path_factory.mktemp("service")
    with running(folder, "--empty", "--slow", "0.3", postgres=postgres.create()) as service:
        yield service
