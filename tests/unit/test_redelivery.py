"""Who is let in once more: a message that comes again, and what the policies add."""

from __future__ import annotations

import pytest

from remit_gates._decide import Granted, Refused
from remit_gates._model import Phase, Reason
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, refusal, why


# Delivery ids.


def test_the_same_message_is_served_again_after_a_failure(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1", id="m1"))
    ledger.ends("failed")
    second = claim(ledger.answer("p1", id="m1", by="b"))
    assert (second.attempt, second.key) == (2, first.key)


def test_another_message_is_not_served_after_a_failure(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    assert why(ledger.answer("p1", id="m2")) is Reason.FAILED


def test_no_id_is_not_the_same_id(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    assert why(ledger.answer("p1")) is Reason.FAILED


def test_the_same_message_is_not_served_again_after_a_success(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("finished")
    assert why(ledger.answer("p1", id="m1")) is Reason.CONSUMED


def test_the_same_message_does_not_decide_what_becomes_of_an_abandoned_pause(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.dies()
    assert why(ledger.answer("p1", id="m1")) is Reason.ABANDONED


@pytest.mark.parametrize("state", ["parked", "failed"])
def test_a_used_message_never_answers_another_pause(ledger: Ledger, state: str) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends(state, "p2")
    verdict = refusal(ledger.answer("p2", id="m1"))
    assert verdict.reason is Reason.CONSUMED
    assert verdict.consumption == ledger.record.consumption("p1")


def test_a_used_message_is_known_even_when_it_answers_nothing_that_waits(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("finished")
    assert why(ledger.answer(id="m1", reason=Reason.NOT_PARKED)) is Reason.CONSUMED


def test_a_used_message_never_answers_another_pause_of_an_abandoned_run(
    ledger: Ledger,
) -> None:
    ledger.policy = Policy(on_abandoned="serve")
    dead = claim(ledger.answer("p1", id="m1"))
    ledger.dies()
    verdict = refusal(ledger.answer("p2", id="m1"))
    assert verdict == Refused(Reason.CONSUMED, dead, ledger.record.consumption("p1"))


def test_a_used_message_never_answers_the_next_question_of_the_same_name(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("parked", "p1")
    assert why(ledger.answer("p1", id="m1")) is Reason.CONSUMED
    assert claim(ledger.answer("p1", id="m2")).key == "p1~1"


def test_a_used_message_answers_the_same_question_asked_again(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.dies()
    ledger.go_on()
    ledger.ends("parked", "p1")
    assert claim(ledger.answer("p1", id="m1")).attempt == 3


def test_an_unused_message_is_an_ordinary_one(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("parked", "p2")
    assert claim(ledger.answer("p2", id="m2")).delivery == "m2"


# Policies.


def test_retry_serves_another_answer_after_a_failure(ledger: Ledger) -> None:
    ledger.policy = Policy(on_failure="retry")
    first = claim(ledger.answer("p1", id="m1", digest="no"))
    ledger.ends("failed")
    second = claim(ledger.answer("p1", id="m2", digest="yes"))
    assert (second.attempt, second.key) == (2, first.key)
    (entry,) = ledger.record.consumptions
    assert (entry.digest, entry.delivery, entry.phase) == ("yes", "m2", Phase.RUNNING)
    assert entry.outcome is None


def test_retry_does_not_serve_after_a_success(ledger: Ledger) -> None:
    ledger.policy = Policy(on_failure="retry", on_abandoned="serve")
    ledger.answer("p1")
    ledger.ends("finished")
    assert why(ledger.answer("p1")) is Reason.CONSUMED


def test_serve_takes_over_from_a_dead_holder_with_a_higher_token(ledger: Ledger) -> None:
    ledger.policy = Policy(on_abandoned="serve")
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    verdict = ledger.answer("p1", by="b")
    assert isinstance(verdict, Granted)
    assert verdict.replaced == dead
    assert verdict.claim.token > dead.token
    assert (verdict.claim.attempt, verdict.claim.key) == (2, dead.key)


def test_serve_says_nothing_about_failures(ledger: Ledger) -> None:
    ledger.policy = Policy(on_abandoned="serve")
    ledger.answer("p1")
    ledger.ends("failed")
    assert why(ledger.answer("p1")) is Reason.FAILED


def test_retry_says_nothing_about_the_dead(ledger: Ledger) -> None:
    ledger.policy = Policy(on_failure="retry")
    ledger.answer("p1")
    ledger.dies()
    assert why(ledger.answer("p1")) is Reason.ABANDONED


def test_the_lease_is_the_policys(ledger: Ledger) -> None:
    ledger.policy = Policy(lease=5.0)
    assert claim(ledger.answer("p1")).lease == 5.0
