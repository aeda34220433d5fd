"""Who is let in once more: a message that comes again, and what the policies add."""

from __future__ import annotations

import pytest

from remit_gates._decide import Granted, Refused, withdraw
from remit_gates._model import KEEP, Intent, Phase, Reason
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, refusal, why


# Delivery ids.


def test_the_same_message_is_served_again_after_a_failure(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1", id="m1"))
    ledger.ends("failed")
    second = claim(ledger.answer("p1", id="m1", by="b"))
    assert (second.attempt, second.key) == (2, first.key)


def test_another_answer_under_the_same_id_is_not_the_same_message(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    verdict = refusal(ledger.answer("p1", id="m1", digest="no"))
    assert (verdict.reason, verdict.same) == (Reason.FAILED, False)


def test_an_answer_without_a_digest_is_known_by_its_id_alone(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1", digest=None)
    ledger.ends("failed")
    claim(ledger.answer("p1", id="m1", digest="no"))


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
    ledger.ends("parked", "p1", applied=False)
    assert claim(ledger.answer("p1", id="m1")).attempt == 3


def test_an_unused_message_is_an_ordinary_one(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("parked", "p2")
    assert claim(ledger.answer("p2", id="m2")).delivery == "m2"


def test_a_message_is_known_though_another_answered_its_pause_since(ledger: Ledger) -> None:
    ledger.policy = Policy(on_failure="retry")
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    ledger.answer("p1", id="m2")
    ledger.ends("parked", "p2")
    assert ledger.record.spent == ("m1",)
    assert refusal(ledger.answer("p2", id="m1")) == Refused(Reason.CONSUMED)


def test_a_message_whose_answer_was_released_is_known_once_another_answered(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    ledger.releases()
    ledger.answer("p1", id="m2")
    ledger.ends("parked", "p2")
    assert why(ledger.answer("p2", id="m1")) is Reason.CONSUMED


def test_a_message_that_comes_again_does_not_spend_its_own_id(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    assert ledger.record.spent == ()
    assert claim(ledger.answer("p1", id="m1")).attempt == 3


def test_a_withdrawn_attempt_does_not_spend_the_id_of_the_one_before(ledger: Ledger) -> None:
    ledger.policy = Policy(on_failure="retry")
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    token = claim(ledger.answer("p1", id="m2")).token
    after = withdraw(ledger.record, token, ledger.before)
    assert after is not None
    ledger.record, ledger.lease_left = after, None
    assert claim(ledger.answer("p1", id="m1")).attempt == 2


@pytest.mark.parametrize("pauses", [("p1",), ("p2",), ("p1", "p2", "p3"), ("p1", "p3"), ()])
def test_a_message_answers_exactly_what_it_answered_before(
    ledger: Ledger, pauses: tuple[str, ...]
) -> None:
    ledger.answer("p1", "p2", id="m1")
    ledger.ends("failed")
    verdict = refusal(ledger.answer(*pauses, id="m1"))
    assert (verdict.reason, verdict.consumption) == (Reason.CONSUMED, ledger.entry("p2"))
    assert claim(ledger.answer("p2", "p1", id="m1")).attempt == 2


def test_a_message_is_refused_when_one_of_its_questions_is_the_next(ledger: Ledger) -> None:
    ledger.answer("p1", "p2", id="m1")
    ledger.ends("parked", "p1")
    ledger.start()
    ledger.ends("parked", "p1", "p2")
    assert (ledger.entry("p1").reopened, ledger.entry("p2").reopened) == ("anew", "again")
    verdict = refusal(ledger.answer("p1", "p2", id="m1"))
    assert verdict == Refused(Reason.CONSUMED, None, ledger.entry("p2"))


# Messages without an answer.


@pytest.mark.parametrize("intent", [Intent.CONTINUE, Intent.START, Intent.FORK])
def test_a_message_without_an_answer_does_its_work_once(ledger: Ledger, intent: Intent) -> None:
    claim(ledger.deliver(intent, id="m1"))
    ledger.ends("parked")
    assert ledger.record.spent == ("m1",)
    assert refusal(ledger.deliver(intent, id="m1")) == Refused(Reason.CONSUMED)
    assert claim(ledger.deliver(intent, id="m2")).delivery == "m2"


@pytest.mark.parametrize("intent", [Intent.CONTINUE, Intent.START, Intent.FORK])
def test_a_message_without_an_answer_is_served_again_after_a_failure(
    ledger: Ledger, intent: Intent
) -> None:
    claim(ledger.deliver(intent, id="m1"))
    ledger.ends("failed")
    assert ledger.record.spent == ()
    assert claim(ledger.deliver(intent, id="m1")).delivery == "m1"


def test_a_message_without_an_answer_is_served_again_after_its_holder_died(
    ledger: Ledger,
) -> None:
    claim(ledger.go_on(id="m1"))
    ledger.dies()
    assert claim(ledger.go_on(id="m1")).delivery == "m1"


def test_a_message_that_did_its_work_never_becomes_an_answer(ledger: Ledger) -> None:
    ledger.go_on(id="m1")
    ledger.ends("parked", "p1")
    assert why(ledger.answer("p1", id="m1")) is Reason.CONSUMED


def test_only_the_last_messages_without_an_answer_are_known(ledger: Ledger) -> None:
    for number in range(KEEP + 1):
        ledger.go_on(id=f"m{number}")
        ledger.ends("parked")
    assert ledger.record.spent == tuple(f"m{number}" for number in range(1, KEEP + 1))
    assert why(ledger.go_on(id="m1")) is Reason.CONSUMED
    assert isinstance(ledger.go_on(id="m0"), Granted)


def test_the_message_of_an_answer_that_failed_may_go_on_with_it(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1", id="m1"))
    ledger.ends("failed")
    assert claim(ledger.go_on(id="m1")).key == first.key
    ledger.ends("parked")
    assert ledger.record.spent == ()
    assert refusal(ledger.go_on(id="m1")) == Refused(Reason.CONSUMED, None, ledger.entry("p1"))


@pytest.mark.parametrize("released", ["p1", "p2"])
def test_the_message_of_an_answer_may_go_on_with_what_was_not_released(
    ledger: Ledger, released: str
) -> None:
    ledger.answer("p1", "p2", id="m1")
    ledger.ends("failed")
    ledger.releases(pause=released)
    assert len(claim(ledger.go_on(id="m1")).pauses) == 1


def test_the_message_of_an_answer_that_failed_before_the_last_may_not(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    ledger.start()
    ledger.ends("parked")
    assert why(ledger.go_on(id="m1")) is Reason.CONSUMED


def test_the_message_of_an_answer_never_becomes_new_input(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    assert why(ledger.start(id="m1")) is Reason.CONSUMED


def test_the_message_that_went_on_with_an_answer_is_spent_beside_the_answers_own(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed")
    ledger.go_on(id="m2")
    ledger.ends("parked")
    assert ledger.record.spent == ("m2",)
    assert why(ledger.go_on(id="m2")) is Reason.CONSUMED
    assert why(ledger.answer("p2", id="m1")) is Reason.CONSUMED


@pytest.mark.parametrize("stops", ["failed", "dead", "released"])
@pytest.mark.parametrize("intent", [Intent.CONTINUE, Intent.START])
def test_a_message_whose_work_another_finished_did_its_work(
    ledger: Ledger, intent: Intent, stops: str
) -> None:
    ledger.deliver(intent, id="m1")
    if stops == "failed":
        ledger.ends("failed")
    else:
        ledger.dies()
    if stops == "released":
        ledger.releases()
    ledger.go_on(id="m2")
    ledger.ends("finished")
    assert ledger.record.spent == ("m1", "m2")
    assert why(ledger.deliver(intent, id="m1")) is Reason.CONSUMED


def test_a_message_whose_work_new_input_left_behind_is_served_again(ledger: Ledger) -> None:
    ledger.start(id="m1")
    ledger.ends("failed")
    ledger.start(id="m2")
    ledger.ends("finished")
    assert isinstance(ledger.start(id="m1"), Granted)


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


def test_a_message_is_known_when_its_answer_is_forgotten(ledger: Ledger) -> None:
    ledger.answer("p", id="m1")
    ledger.ends("parked", "q0")
    for number in range(KEEP):
        ledger.answer(f"q{number}")
        ledger.ends("parked", f"q{number + 1}")
    assert ledger.record.consumption("p") is None
    assert why(ledger.answer(f"q{KEEP}", id="m1")) is Reason.CONSUMED
