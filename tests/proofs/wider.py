"""What takes too long for each run of the suite: every policy, with all that may go wrong,
judged by the adapter. `make prove` runs it; pytest collects it only by name."""

from __future__ import annotations

import sys

import pytest

from tests.proofs.adapted import every_policy
from tests.proofs.explorer import explore
from tests.proofs.judgement import PENDING, breach, cases, records
from tests.proofs.model import Model
from tests.proofs.world import Scenario


@pytest.mark.parametrize(
    "scenario", [pytest.param(scenario, id=name) for name, scenario in every_policy()]
)
def test_no_world_breaks_an_invariant_under_any_policy(scenario: Scenario) -> None:
    explored = explore(Model(scenario))
    sys.stdout.write(f"{explored}\n")
    assert explored.breach is None, str(explored)
    assert any(end == "left: True" for _, end in explored.ends)


def test_no_judgement_serves_what_it_should_not() -> None:
    for case in cases(records(1, (PENDING[1], PENDING[4]))):
        assert breach(case) is None, case
