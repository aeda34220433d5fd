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
    page = (ROOT / "docs" / "contract.md").read_text("utf-8")
    stock, gated = body["summary"]["stock"], body["summary"]["gated"]
    assert (
        f"| stock | {stock['deliveries']} | {stock['effects']} | {stock['saturated']} of 40 cells |"
        f" {stock['once']} of 40 |"
    ) in page
    assert (
        f"| gated | {gated['deliveries']} | {gated['effects']} | {gated['saturated']} of 40 |"
        f" {gated['once']} of 40 |"
    ) in page
    assert all(f"{count} `{name}`" in page for name, count in gated["errors"].items())
    stocks = [each for each in raced(path) if each.column == "stock"]
    assert all(max(each.effects) == each.racers for each in stocks)
    assert f"the mean of {sum(each.per_delivery >= 0.95 for each in stocks)} is at least" in page


def test_what_is_told_of_namespaces_is_committed() -> None:
    (path,) = set(FILES) - set(WHOLE)
    body = json.loads(path.read_text("utf-8"))
    stock, gated = body["summary"]["stock"], body["summary"]["gated"]
    page = " ".join((ROOT / "docs" / "contract.md").read_text("utf-8").split())
    told = f"stock, {stock['effects']} effects for {stock['deliveries']} deliveries"
    told += f", saturated in {stock['saturated']} of 20 cells"
    assert f"{told}; gated, {gated['effects']}, exactly once in each" in page
    assert gated["once"] == gated["cells"] == 20
    assert body["repetitions"] == REPETITIONS
    racers = max(each.racers for each in raced(path))
    assert len(set(body["hosts"].values())) == racers
