"""Every error is in one tree, and carries what a caller needs to act on it."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

from remit_gates import errors
from remit_gates._model import Phase, Reason
from remit_gates.errors import (
    AlreadyConsumed,
    ClaimLost,
    InProgress,
    MissingExtra,
    OutcomeUnknown,
    RemitError,
    ResumeRefused,
    StaleTicket,
    StoreUnavailable,
    UsageError,
)
from tests.unit.worlds import RUN, Ledger


ALL: list[type[Any]] = [
    member
    for _, member in inspect.getmembers(errors, inspect.isclass)
    if member.__module__ == errors.__name__
]
REFUSALS = [kind for kind in ALL if issubclass(kind, ResumeRefused)]


def pickled(error: Any) -> Any:
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_in_the_tree_and_says_when_it_is_raised(kind: type[Exception]) -> None:
    assert issubclass(kind, RemitError)
    assert (kind.__doc__ or "").startswith("Raised when ")


def test_the_tree_that_is_drawn_is_the_tree_that_is_there() -> None:
    drawn = re.findall(r"^ *(?:[│├└─ ]*)([A-Z][A-Za-z]+)\b", errors.__doc__ or "", re.MULTILINE)
    assert {name for name in drawn if hasattr(errors, name)} == {kind.__name__ for kind in ALL}


def test_the_statuses_that_are_drawn_are_the_statuses_that_are_there() -> None:
    drawn = dict(re.findall(r"\b([A-Z][A-Za-z]+) +(\d{3})", errors.__doc__ or ""))
    there = {kind.__name__: str(kind.http_status) for kind in ALL if hasattr(kind, "http_status")}
    assert drawn == {name: there[name] for name in drawn}
    assert set(there) - set(drawn) == {"ResumeRefused"}


def test_only_an_unknown_outcome_leaves_open_whether_the_claim_landed() -> None:
    assert [kind for kind in ALL if not kind.definite] == [OutcomeUnknown]


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_carries_all_that_it_was_made_of(
    kind: type[ResumeRefused], ledger: Ledger
) -> None:
    ledger.answer("p1")
    claim = ledger.record.claim
    entry = ledger.record.consumption("p1")
    error = kind(
        "what happened",
        reason=Reason.IN_PROGRESS,
        run=RUN,
        pauses=("p1",),
        claim=claim,
        consumption=entry,
        retry_after=2.5,
    )
    assert str(error) == "what happened"
    assert (error.reason, error.run, error.pauses) == (Reason.IN_PROGRESS, RUN, ("p1",))
    assert (error.claim, error.consumption, error.retry_after) == (claim, entry, 2.5)
    assert error.http_status == (410 if kind is StaleTicket else 409)


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_is_whole_in_another_process(
    kind: type[ResumeRefused], again: Callable[[Any], Any], ledger: Ledger
) -> None:
    ledger.answer("p1")
    error = kind(
        "what happened",
        reason=Reason.IN_PROGRESS,
        run=RUN,
        pauses=("p1",),
        claim=ledger.record.claim,
        consumption=ledger.entry("p1"),
        retry_after=2.5,
        same_answer=True,
    )
    back = again(error)
    assert type(back) is kind
    assert back is not error
    assert (str(back), back.args, vars(back)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in REFUSALS])
def test_any_other_error_is_whole_in_another_process(kind: type[Exception]) -> None:
    back = pickled(kind("what happened"))
    assert (type(back), str(back), back.args) == (kind, "what happened", ("what happened",))


def test_a_refusal_of_which_little_is_known_says_so() -> None:
    error = ResumeRefused("what happened", reason=Reason.NOT_PARKED, run=RUN)
    assert (error.pauses, error.claim, error.consumption) == ((), None, None)
    assert error.retry_after is None


def test_a_consumed_pause_says_whether_its_run_failed(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    entry = ledger.record.consumption("p1")
    assert entry is not None
    assert entry.phase is Phase.FAILED
    failed = AlreadyConsumed("", reason=Reason.FAILED, run=RUN, consumption=entry)
    assert failed.failed
    assert failed.outcome == entry.outcome
    consumed = AlreadyConsumed("", reason=Reason.CONSUMED, run=RUN)
    assert not consumed.failed
    assert consumed.outcome is None


@pytest.mark.parametrize("same", [True, False, None])
def test_a_consumed_pause_says_whether_the_answer_was_the_same(same: bool | None) -> None:
    error = AlreadyConsumed("", reason=Reason.CONSUMED, run=RUN, same_answer=same)
    assert error.same_answer is same


def test_errors_are_also_what_the_language_calls_them() -> None:
    assert issubclass(UsageError, ValueError)
    assert issubclass(MissingExtra, ImportError)
    assert not issubclass(InProgress, UsageError)
    assert not issubclass(ClaimLost, ResumeRefused)
    assert StoreUnavailable.http_status == 503
