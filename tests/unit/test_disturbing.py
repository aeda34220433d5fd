"""A delivery whose run would do the work of a pause that it does not answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from remit_gates._model import Phase, Reason
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, refusal, why


RETRY = Policy(on_failure="retry", on_abandoned="serve")


def fails(ledger: Ledger) -> None:
    ledger.ends("failed")


def dies(ledger: Ledger) -> None:
    ledger.dies()


# Answers.


@pytest.mark.parametrize(("stops", "reason"), [(fails, Reason.FAILED), (dies, Reason.ABANDONED)])
def test_an_answer_is_refused_while_it_would_do_again_what_did_not_finish(
    ledger: Ledger, stops: Callable[[Ledger], None], reason: Reason
) -> None:
    ledger.answer("p1")
    stops(ledger)
    verdict = refusal(ledger.answer("p2", disturbs=("p1",)))
    assert (verdict.reason, verdict.consumption) == (reason, ledger.entry("p1"))


def test_what_a_dead_holder_left_stays_in_the_way_after_somebody_else_went_by(
    ledger: Ledger,
) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.start()
    ledger.ends("parked", "p2")
    verdict = refusal(ledger.answer("p2", disturbs=("p1",)))
    assert (verdict.reason, verdict.claim) == (Reason.ABANDONED, None)
    assert verdict.consumption == ledger.entry("p1")


def test_a_policy_about_failures_says_nothing_about_the_dead(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.policy = Policy(on_failure="retry")
    assert why(ledger.answer("p2", disturbs=("p1",))) is Reason.ABANDONED
    ledger.policy = Policy(on_abandoned="serve")
    assert claim(ledger.answer("p2", disturbs=("p1",))).pauses == ("p2", "p1")


@pytest.mark.parametrize("stops", [fails, dies])
def test_an_answer_that_is_served_all_the_same_goes_on_with_the_earlier_one(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.policy = RETRY
    ledger.answer("p1", digest="no", id="m1", actor="Ann")
    stops(ledger)
    got = claim(ledger.answer("p2", disturbs=("p1",), id="m2", actor="Bob", by="b"))
    assert (got.pauses, got.attempt, got.key) == (("p2", "p1"), 2, "p1~0 p2~0")
    entry = ledger.entry("p1")
    assert (entry.digest, entry.delivery, entry.actor) == ("no", "m1", "Ann")
    assert (entry.token, entry.holder, entry.since) == (got.token, got.holder, 1_001.0)
    assert (entry.phase, entry.attempt, entry.outcome) == (Phase.RUNNING, 2, None)


def test_a_pause_of_which_nothing_is_known_is_nobodys_to_disturb(ledger: Ledger) -> None:
    got = claim(ledger.answer("p2", disturbs=("unknown",)))
    assert (got.pauses, got.key) == (("p2",), "p2~0")


def test_a_pause_that_is_answered_as_well_is_answered(ledger: Ledger) -> None:
    ledger.policy = RETRY
    ledger.answer("p1", digest="no", id="m1")
    ledger.ends("failed")
    got = claim(ledger.answer("p1", disturbs=("p1",), id="m2"))
    assert (got.pauses, got.attempt) == (("p1",), 2)
    entry = ledger.entry("p1")
    assert (entry.digest, entry.delivery, entry.since) == ("yes", "m2", got.since)


def test_an_answer_goes_on_with_a_disturbed_pause_though_it_was_released(
    ledger: Ledger,
) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.releases()
    got = claim(ledger.answer("p2", disturbs=("p1",)))
    assert got.pauses == ("p2", "p1")
    assert ledger.record.closed("p1") == ledger.entry("p1")


def test_a_disturbed_question_that_is_asked_again_is_the_old_one(ledger: Ledger) -> None:
    ledger.policy = RETRY
    ledger.answer("p1", id="m1")
    ledger.dies()
    ledger.answer("p2", disturbs=("p1",), id="m2")
    ledger.ends("parked", "p1", "p2")
    assert ledger.entry("p1").reopened == "again"
    assert ledger.entry("p2").reopened == "anew"
    assert claim(ledger.answer("p1", id="m1")).key == "p1~0"


# Going on.


@pytest.mark.parametrize("stops", [fails, dies])
def test_going_on_adopts_what_it_disturbs_though_it_was_released(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    first = claim(ledger.answer("p1", digest="no"))
    stops(ledger)
    ledger.releases()
    got = claim(ledger.go_on(disturbs=("p1",)))
    assert (got.pauses, got.attempt, got.key) == (("p1",), 2, first.key)
    entry = ledger.entry("p1")
    assert (entry.digest, entry.phase, entry.reopened) == ("no", Phase.RUNNING, None)
    ledger.ends("finished")
    assert why(ledger.answer("p1")) is Reason.CONSUMED


def test_going_on_adopts_once_what_it_disturbs_and_finds_unfinished(ledger: Ledger) -> None:
    ledger.answer("p1", "p2")
    ledger.ends("failed")
    ledger.releases(pause="p2")
    got = claim(ledger.go_on(disturbs=("p1", "p2")))
    assert (got.pauses, got.attempt) == (("p1", "p2"), 2)
    assert [entry.attempt for entry in ledger.record.consumptions] == [2, 2]


def test_going_on_is_not_refused_for_what_it_disturbs(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.start()
    ledger.ends("parked")
    assert claim(ledger.go_on(disturbs=("p1",))).pauses == ("p1",)


def test_new_input_never_goes_on_under_the_key_of_what_it_disturbs(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1", "p2"))
    ledger.ends("failed")
    got = claim(ledger.start(disturbs=("p1",)))
    assert (got.pauses, got.key) == (("p1",), "p1~0")
    assert got.key != first.key
