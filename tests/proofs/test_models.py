"""The table of models is whole, and its runner takes nothing for a verdict that is none."""

from __future__ import annotations

import re

import checks
import pytest
from tlc import HERE, Check, Unusable, committed, configuration, read


GATE = Check("gate", "ResumeGate")

HOLDS = """\
Model checking completed. No error has been found.
377 states generated, 264 distinct states found, 0 states left on queue.
"""

REFUTED = """\
Error: Invariant Once is violated.
State 1: <Initial predicate>
State 2: <Read line 1>
12 states generated, 9 distinct states found, 3 states left on queue.
"""


def test_a_verdict_is_read() -> None:
    held = read(GATE, 0, HOLDS, 1.0)
    assert (held.violated, held.states) == (None, 264)
    refuted = read(GATE, 12, REFUTED, 1.0)
    assert (refuted.violated, refuted.states, refuted.steps) == ("Once", 9, 2)


@pytest.mark.parametrize(
    ("code", "output"),
    [
        pytest.param(0, "", id="silence"),
        pytest.param(12, HOLDS, id="an exit that contradicts"),
        pytest.param(0, REFUTED, id="an exit that contradicts the other way"),
        pytest.param(255, HOLDS, id="another exit"),
        pytest.param(12, "Error: Parsing or semantic analysis failed.", id="a model in error"),
    ],
)
def test_what_is_no_verdict_is_an_error(code: int, output: str) -> None:
    with pytest.raises(Unusable):
        read(GATE, code, output, 1.0)


def test_the_matrix_has_39_cells() -> None:
    cells = {(fault, name) for fault in checks.FAULTS for name in checks.PROPERTIES}
    assert sum(checks.counted(*cell) for cell in cells) == 39
    # What is not counted is not expected to fail, but for a fault in an obligation.
    assert {cell for cell in cells if cell[1] in checks.FAULTS[cell[0]]} - {
        cell for cell in cells if checks.counted(*cell)
    } == {("retry is fork", "CO")}


def test_every_property_of_the_contract_has_a_formula_and_a_fault_that_breaks_it() -> None:
    document = (HERE.parent / "docs" / "contract.md").read_text()
    named = re.findall(r"^\| \*\*([A-Z]{2})(?:-[ce])?\*\* ", document, re.MULTILINE)
    assert {"FI", "LV"} < {*named}
    checked = {"Live" if name == "LV" else name for name in named}
    assert checked == {*checks.NAMES}
    assert frozenset().union(*checks.FAULTS.values()) == checked
    assert {*committed("ResumeContract").invariants} - {"Types"} == checked - {"Live"}


def test_every_invariant_of_the_gate_has_a_twin_that_breaks_it() -> None:
    refuted = {twin.refutes for twin in checks.twins()}
    assert {*committed("ResumeGate").invariants} - {"Types"} <= refuted


def test_every_switch_of_the_gate_is_off_in_some_twin() -> None:
    text = (HERE / "ResumeGate.tla").read_text()
    lacks = re.search(r"What a broken twin lacks. \*\)\n(.*?)\n\n", text, re.DOTALL)
    assert lacks is not None
    switches = re.findall(r"\b[A-Z]\w+(?=,|\n|\s+\\\*)", re.sub(r"\\\*.*", "", lacks.group(1)))
    used = {name for twin in checks.twins() for name in twin.constants}
    assert len(switches) >= 8
    assert {*switches} <= used


def test_a_configuration_declares_its_deliveries() -> None:
    text = configuration(Check("x", "ResumeGate", {"Firsts": frozenset({"a1", "a7"})}))
    assert "  a7 = a7\n" in text
    assert "  Firsts = {a1, a7}\n" in text
    assert text.count("Firsts =") == 1
