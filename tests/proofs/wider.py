"""What takes too long for each run of the suite: every policy, with all that may go wrong,
judged by the adapter. `make prove` runs it; pytest collects it only by name."""

from __future__ import annotations

import re
import sys

import pytest

from tests.proofs.adapted import every_policy
from tests.proofs.explorer import explore
from tests.proofs.judgement import PENDING, breach, cases, records
from tests.proofs.model import Model
from tests.proofs.test_contracts import check
from tests.proofs.world import Scenario


CONTRACTS = ("live", "policies", "void", "adopted", "released", "asked_again")


@pytest.mark.parametrize(
    "scenario", [pytest.param(scenario, id=name) for name, scenario in every_policy()]
)
def test_no_world_breaks_an_invariant_under_any_policy(scenario: Scenario) -> None:
    explored = explore(Model(scenario))
    sys.stdout.write(f"{explored}\n")
    assert explored.breach is None, str(explored)
    assert any(end == "left: True" for _, end in explored.ends)


def test_no_judgement_serves_what_it_should_not() -> None:
    for case in cases(records(1, PENDING[4:5])):
        assert breach(case) is None, case


def test_every_decision_keeps_its_contract_over_all_paths() -> None:
    code, said = check(*(f"tests.proofs.contracts.{name}" for name in CONTRACTS))
    assert said.count("Confirmed over all paths.") == len(CONTRACTS), said
    assert len(said.splitlines()) == len(CONTRACTS), said
    assert code == 0


def test_a_decision_that_retries_whatever_the_policy_is_refuted() -> None:
    code, said = check("tests.proofs.broken_contracts.policies")
    assert re.search(r"error: false when calling policies\(", said), said
    assert code == 1
