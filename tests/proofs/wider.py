"""What takes too long for each run of the suite: every policy, with all that may go wrong,
judged by the adapter. `make prove` runs it; pytest collects it only by name.

All of it is done side by side, in as many processes as there are processors; a test waits for
its part.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Final

import pytest

from tests.proofs.adapted import every_policy
from tests.proofs.explorer import Explored, explore
from tests.proofs.judgement import PENDING, Case, breach, cases, records
from tests.proofs.model import Model
from tests.proofs.test_contracts import check
from tests.proofs.world import Scenario


pytestmark = pytest.mark.timeout(600)

CONTRACTS: Final = ("live", "policies", "void", "adopted", "released", "asked_again")
SCENARIOS: Final[Mapping[str, Scenario]] = dict(every_policy())


def explored(name: str) -> Explored:
    return explore(Model(SCENARIOS[name]))


def misjudged() -> tuple[Case, str] | None:
    """A judgement that serves what it should not, and what is wrong with it."""
    for case in cases(records(1, PENDING[4:5])):
        if (wrong := breach(case)) is not None:
            return case, wrong
    return None


def proved() -> tuple[int, str]:
    return check(*(f"tests.proofs.contracts.{name}" for name in CONTRACTS))


@pytest.fixture(scope="session")
def found(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Any]]]:
    """What each test of this module waits for, by its name; what takes longest begins first."""
    asked = {item.name for item in request.session.items}
    parts: dict[str, tuple[Any, ...]] = {
        "test_every_decision_keeps_its_contract_over_all_paths": (proved,),
        "test_no_judgement_serves_what_it_should_not": (misjudged,),
    }
    explorations = sorted(SCENARIOS, key=lambda name: "wait" not in name)
    parts |= {f"{WORLDS}[{name}]": (explored, name) for name in explorations}
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        yield {name: pool.submit(*part) for name, part in parts.items() if name in asked}
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def result(found: Mapping[str, Future[Any]], request: pytest.FixtureRequest) -> Any:
    return found[request.node.name].result()


WORLDS: Final = "test_no_world_breaks_an_invariant_under_any_policy"


@pytest.mark.parametrize("_name", [pytest.param(name, id=name) for name in SCENARIOS])
def test_no_world_breaks_an_invariant_under_any_policy(_name: str, result: Explored) -> None:
    sys.stdout.write(f"{result}\n")
    assert result.breach is None, str(result)
    assert any(end == "left: True" for _, end in result.ends)


def test_no_judgement_serves_what_it_should_not(result: tuple[Case, str] | None) -> None:
    assert result is None


def test_every_decision_keeps_its_contract_over_all_paths(result: tuple[int, str]) -> None:
    code, said = result
    assert said.count("Confirmed over all paths.") == len(CONTRACTS), said
    assert len(said.splitlines()) == len(CONTRACTS), said
    assert code == 0


def test_a_decision_that_retries_whatever_the_policy_is_refuted() -> None:
    code, said = check("tests.proofs.broken_contracts.policies")
    assert re.search(r"error: false when calling policies\(", said), said
    assert code == 1
