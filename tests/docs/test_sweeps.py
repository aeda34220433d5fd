"""What the documents say of the committed sweeps is what is in them, and they are whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit_gates.contract._sweep import COLUMNS, REPETITIONS, Raced, cells


ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "docs" / "profiles" / "sweeps").glob("*.json"))
WHOLE = [path for path in FILES if "namespaces" not in path.name]


def raced(path: Path) -> list[Raced]:
    """The cells of a file, from what was counted alone."""
    counted = [name for name in Raced.__slots__ if name != "jitter"]
    body: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return [
        Raced(**{name: each[name] for name in counted}, jitter=each["jitter_ms"])
        for each in body["cells"]
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_figures_follow_from_what_was_counted(path: Path) -> None:
    body = json.loads(path.read_text("utf-8"))
    assert [each.document() for each in raced(path)] == body["cells"]
    for each in raced(path):
        assert not each.failed
        assert len(each.effects) == len(each.later) == len(each.took) == body["repetitions"]
        assert sum(each.outcomes.values()) == each.deliveries
        assert sum(each.errors.values()) == each.deliveries - each.outcomes.get("ok", 0)
        assert each.once or each.column == "stock"


def test_the_published_sweep_is_whole_and_told() -> None:
    (path,) = WHOLE
    body = json.loads(path.read_text("utf-8"))
    assert body["version"] == "1.2.9"
    assert body["repetitions"] == REPETITIONS
    every = [str(cell) for cell in cells(["sqlite", "postgres"])]
    for column in COLUMNS:
        found = [
            f"{each.backend}/{each.racers}/{each.jitter}"
            for each in raced(path)
            if each.column == column
        ]
        assert found == every
    page = " ".join((ROOT / "docs" / "contract.md").read_text("utf-8").split())
    stock, gated = body["summary"]["stock"], body["summary"]["gated"]
    assert f"saturated in {stock['saturated']} of {stock['cells']} cells" in page
    assert f"exactly once in {gated['once']} of {gated['cells']} cells" in page
    assert f"{stock['effects']} effects for {stock['deliveries']} deliveries" in page
