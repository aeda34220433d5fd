"""The production flows, interleaved in every way, keep every invariant."""

from __future__ import annotations

import sys

import pytest

from remit_gates._model import Record
from tests.proofs.adapted import ADAPTED
from tests.proofs.explorer import explore
from tests.proofs.model import Model
from tests.proofs.scenarios import PROOFS, SERVE, TWIN, A, Case
from tests.proofs.world import Scenario, World


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in {**PROOFS, **ADAPTED}.items()]
)
def test_no_world_breaks_an_invariant(case: Case) -> None:
    explored = explore(Model(case.scenario))
    sys.stdout.write(f"{explored}\n")
    assert explored.breach is None, str(explored)
    assert case.expected <= explored.ends


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(Scenario((A, TWIN)), id="refusing"),
        pytest.param(Scenario((A, TWIN), SERVE, losses=1, ticks=False), id="serving"),
    ],
)
def test_merging_points_of_flows_hides_no_world(scenario: Scenario) -> None:
    assert _shadows(scenario, merged=True) == _shadows(scenario, merged=False)


def _shadows(scenario: Scenario, *, merged: bool) -> set[tuple[object, ...]]:
    """Every reachable world without the points of its flows."""

    class Watched(Model):
        def breach(self, world: World) -> str | None:
            stages = tuple((process.stage, process.moving) for process in world.processes)
            record: Record = self.record(world)
            seen.add((record, world.left, world.place, world.answer, world.runs, stages))
            return super().breach(world)

    seen: set[tuple[object, ...]] = set()
    assert explore(Watched(scenario, merged=merged)).breach is None
    return seen
