"""Decisions about a delivery that names its question: which one of several in one place,
and a continue that is bound to where it goes on."""

from __future__ import annotations

import pytest

from remit_gates._decide import Verdict, decide, same_as_served
from remit_gates._model import Answer, Delivery, Intent, Reason
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, holder, refusal, why


def names(ledger: Ledger, generation: int, digest: str = "yes") -> Verdict:
    """The verdict on an answer that names this question of the place `p1`."""
    answer = Answer("p1", digest, generation=generation)
    delivery = Delivery(Intent.ANSWER, holder("b"), (answer,), bound=True)
    return decide(ledger.record, delivery, ledger.lease_left, ledger.policy, ledger.now + 1)


def asked_anew(ledger: Ledger) -> None:
    """The first question of `p1` was answered, and the next one waits in its place."""
    ledger.answer("p1")
    ledger.ends("parked", "p1")
    assert ledger.record.generation("p1") == 1


def test_the_next_question_does_not_open_the_one_before_it(ledger: Ledger) -> None:
    assert ledger.record.generation("p1") == 0
    asked_anew(ledger)

    late = refusal(names(ledger, 0))
    assert (late.reason, late.consumption, late.same) == (
        Reason.CONSUMED,
        ledger.entry("p1"),
        True,
    )
    assert refusal(names(ledger, 0, "no")).same is False
    served = claim(names(ledger, 1))
    assert (served.pauses, served.attempt) == (("p1",), 1)


def test_each_question_of_a_place_has_its_own_outcome(ledger: Ledger) -> None:
    asked_anew(ledger)
    first = ledger.entry("p1")
    ledger.answer("p1", digest="no")
    ledger.ends("finished")

    assert refusal(names(ledger, 0)).consumption == first
    assert refusal(names(ledger, 1)).consumption == ledger.entry("p1")
    assert refusal(names(ledger, 1)).same is False


def test_a_question_that_was_released_takes_the_answer_that_names_it(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    assert why(names(ledger, 0)) is Reason.FAILED
    ledger.releases()
    assert ledger.record.generation("p1") == 0
    assert claim(names(ledger, 0)).attempt == 2


def test_what_is_being_served_is_compared(ledger: Ledger) -> None:
    ledger.answer("p1", "p2")
    for digest, same in (("yes", True), ("no", False), (None, None)):
        delivery = Delivery(Intent.ANSWER, holder("b"), (Answer("p1", digest),))
        assert same_as_served(ledger.record, delivery) is same
    other = Delivery(Intent.ANSWER, holder("b"), (Answer("p3", "yes"),))
    assert same_as_served(ledger.record, other) is None
    assert same_as_served(ledger.record, Delivery(Intent.CONTINUE, holder("b"))) is None


# A continue that is bound.


def goes_on(ledger: Ledger, by: str = "b", **rest: object) -> Verdict:
    return ledger.deliver(Intent.CONTINUE, "c1:stop", by=by, position="c1", bound=True, **rest)


def test_a_bound_continue_is_served_once(ledger: Ledger) -> None:
    got = claim(goes_on(ledger))
    assert (got.intent, got.pauses) == (Intent.CONTINUE, ("c1:stop",))
    assert why(goes_on(ledger)) is Reason.IN_PROGRESS
    ledger.ends("finished")
    late = refusal(goes_on(ledger))
    assert (late.reason, late.consumption) == (Reason.CONSUMED, ledger.entry("c1:stop"))


def test_it_has_the_key_of_any_other_continue(ledger: Ledger) -> None:
    key = claim(Ledger().go_on(position="c1")).key
    assert claim(goes_on(ledger)).key == key
    ledger.ends("failed")
    assert why(goes_on(ledger)) is Reason.FAILED
    assert claim(ledger.go_on(position="c1")).key == key
    ledger.ends("failed")
    ledger.releases()
    again = claim(goes_on(ledger))
    assert (again.key, again.attempt) == (key, 3)


def test_after_a_failure_the_same_message_goes_on_once_more(ledger: Ledger) -> None:
    claim(goes_on(ledger, id="m"))
    ledger.ends("failed")
    again = claim(goes_on(ledger, id="m"))
    assert (again.attempt, again.pauses) == (2, ("c1:stop",))
    assert len(ledger.record.consumptions) == 1
    ledger.ends("finished")
    assert why(goes_on(ledger, id="m")) is Reason.CONSUMED


@pytest.mark.parametrize("bound", [True, False])
def test_a_bound_continue_is_no_recovery_of_what_somebody_left(ledger: Ledger, bound: bool) -> None:
    """Whether or not it was the ticket that was being served."""
    claim(goes_on(ledger) if bound else ledger.go_on(position="c1"))
    ledger.dies()
    assert why(goes_on(ledger)) is Reason.ABANDONED
    ledger.policy = Policy(on_abandoned="serve")
    assert claim(goes_on(ledger)).token == ledger.record.token
    ledger.policy = Policy()
    ledger.dies()
    assert claim(ledger.go_on(position="c1")).pauses == ("c1:stop",)
