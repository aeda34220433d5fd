"""A store with one defect fails the one clause that forbids it: the kit can tell."""

from __future__ import annotations

import pytest

from remit_gates._model import RunKey
from remit_gates.stores.memory import MemoryStore
from remit_gates.testing import Violation, check_store, clauses
from tests.stores.broken import DEFECTS, DeleteForgets, Whole
from tests.stores.harnesses import Wrapper


def test_every_clause_has_a_store_that_breaks_it() -> None:
    assert sorted(DEFECTS) == sorted(clauses())


def test_every_clause_says_what_it_demands() -> None:
    assert all(states.endswith(".") for states in clauses().values())


@pytest.mark.parametrize("clause", sorted(DEFECTS))
def test_a_defect_breaks_its_clause_and_no_other(clause: str) -> None:
    report = check_store(DEFECTS[clause]())
    assert report.failed == (clause,), report
    assert not report.not_run


def test_a_whole_store_breaks_none() -> None:
    check_store(Whole()).raise_for_failures(complete=True)


def test_what_could_not_run_is_told() -> None:
    store = MemoryStore()
    report = check_store(lambda: store)
    assert set(report.not_run) == {
        "a_lost_acknowledgement_is_unknown",
        "a_newer_schema_is_refused",
    }
    assert "the harness has no `losing()`" in str(report)
    report.raise_for_failures()
    with pytest.raises(Violation, match="2 not run"):
        report.raise_for_failures(complete=True)


def test_a_failure_is_raised_with_what_was_observed() -> None:
    report = check_store(DeleteForgets())
    with pytest.raises(Violation, match="a record was deleted that was not there"):
        report.raise_for_failures()


def test_an_error_of_the_store_is_a_failure() -> None:
    class Raising(Wrapper):
        def delete(self, run: RunKey) -> bool:
            raise ZeroDivisionError("oops")

    store = Raising(MemoryStore())
    report = check_store(lambda: store, only=("delete_forgets",))
    assert report.failed == ("delete_forgets",)
    assert "ZeroDivisionError: oops" in str(report)


def test_a_clause_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no clause called nonsense"):
        check_store(Whole(), only=("nonsense",))
