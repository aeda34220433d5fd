"""Each broken protocol is caught, by the shortest trace that breaks it."""

from __future__ import annotations

import sys

import pytest

from tests.proofs.explorer import Explored, explore
from tests.proofs.model import Model
from tests.proofs.twins import HARMLESS, LIMITS, TWINS, Twin


def explored(twin: Twin, patch: pytest.MonkeyPatch) -> Explored:
    twin.patch(patch)
    result = explore(Model(twin.scenario, twin.faults))
    sys.stdout.write(f"{result}\n")
    return result


@pytest.mark.parametrize("name", [*TWINS, *LIMITS])
def test_is_caught_with_the_shortest_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = {**TWINS, **LIMITS}[name]
    result = explored(twin, monkeypatch)
    assert result.breach == twin.breach
    assert len(result.trace) == twin.steps, str(result)
    assert result.trace[-1].endswith(f" {twin.last}")


@pytest.mark.parametrize("name", HARMLESS)
def test_one_of_two_safeguards_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explored(HARMLESS[name], monkeypatch).breach is None
