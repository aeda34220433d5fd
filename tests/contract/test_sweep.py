"""The sweep counts what fires and what racers are told, and says so when it could not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from remit_gates.cli import main
from remit_gates.contract._envs import import_path
from remit_gates.contract._frameworks import framework
from remit_gates.contract._line import Target
from remit_gates.contract._sweep import Cell, Raced, cells, sweep
from remit_gates.contract._sweep_command import grid
from remit_gates.contract._sweep_places import Here
from remit_gates.contract._sweep_plot import plot


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    with import_path() as folder:
        yield folder


def reference(path: str, **options: str) -> Here:
    module = "remit_gates.contract.drivers.reference"
    return Here(Target(module, sys.executable, "", options=options, path=(path,)), {})


def test_a_whole_sweep_is_forty_cells() -> None:
    every = grid(framework("langgraph==1.2.9"))
    assert every == cells(["sqlite", "postgres"])
    assert len(every) == len(set(every)) == 40
    assert grid(framework("langgraph"), apart=True) == cells(["postgres"])


def test_one_effect_and_the_refusals_of_the_others_are_counted(path: str) -> None:
    with closing(reference(path)) as place:
        (raced,) = sweep(place, [Cell("file", 4, 1)], repetitions=2, columns=["stock"])
    assert (raced.effects, raced.later, raced.took) == ([1, 1], [1, 1], [1, 1])
    assert raced.outcomes == {"ok": 2, "refused": 6}
    assert raced.errors == {"Refused": 6}
    assert raced.once
    assert not raced.saturated
    assert raced.per_delivery == 0.25


def test_a_framework_that_looks_before_it_takes_fires_more_than_once(path: str) -> None:
    with closing(reference(path, mutant="no_lock")) as place:
        (raced,) = sweep(place, [Cell("file", 3, 0)], repetitions=2, columns=["stock"])
    assert max(raced.effects) > 1
    assert raced.per_delivery > 1 / 3
    assert not raced.once


def test_saturation_is_an_effect_for_every_delivery() -> None:
    every = Raced("file", 3, 0, "stock", effects=[3, 3], later=[3, 3], took=[3, 3])
    assert (every.per_delivery, every.saturated, every.once) == (1.0, True, False)
    most = Raced("file", 3, 0, "stock", effects=[3, 2], later=[3, 2], took=[3, 2])
    assert (most.saturated, most.once) == (False, False)
    later = Raced("file", 3, 0, "stock", effects=[1], later=[2], took=[1])
    assert not later.once


def test_what_could_not_be_raced_is_no_figure(path: str) -> None:
    # The run is there already when the second cell starts it, and so does not park.
    with closing(reference(path)) as place:
        again = [Cell("file", 2, 0)] * 2
        _, raced = sweep(place, again, repetitions=1, columns=["stock"])
    assert "exists" in raced.failed
    assert raced.effects == []
    assert not raced.once
    assert not raced.saturated
    assert ">?<" in plot([raced], "unmeasured")


def test_langgraph_stock_and_gated_in_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, results = tmp_path / "sweep.svg", tmp_path / "sweep.json"
    where = ["--framework", "langgraph", "--python", sys.executable, "--cells", "sqlite/4/0"]
    files = ["--json", "--plot", str(picture), "--out", str(results)]
    status = main(["contract", "sweep", *where, "--reps", "2", *files])
    assert status == 0
    body = json.loads(capsys.readouterr().out)
    assert body == json.loads(results.read_text())
    stock, gated = (Raced(**_plain(each)) for each in body["cells"])
    # How often the stock column fires is a race; that it is more than once is the finding.
    assert sum(stock.effects) > len(stock.effects)
    assert gated.once
    assert gated.outcomes == {"ok": 2, "refused": 6}
    assert set(gated.errors) <= {"InProgress", "AlreadyConsumed"}
    assert body["summary"]["gated"]["once"] == body["summary"]["gated"]["cells"] == 1
    squares = ET.parse(picture).getroot().findall(".//{*}g[@class='cell']")
    assert len(squares) == 2


def test_cells_that_do_not_exist_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contract", "sweep", "--python", sys.executable, "--cells", "oracle/*"]) != 0
    assert "No cell matches oracle/*" in capsys.readouterr().err


def test_a_driver_that_cannot_start_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no framework here >&2\nexit 1\n")
    broken.chmod(0o755)
    argv = ["contract", "sweep", "--python", str(broken), "--cells", "sqlite/2/0"]
    assert main(argv) == 1
    assert "Nothing was measured" in capsys.readouterr().err


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {name: document[name] for name in Raced.__slots__ if name != "jitter"}
    return made | {"jitter": document["jitter_ms"]}
