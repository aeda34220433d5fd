"""Every decision of the protocol, one test each, on records alone."""

from __future__ import annotations

import pytest

from remit_gates._decide import Granted, Refused, settle, withdraw
from remit_gates._model import KEEP, Intent, Outcome, Phase, Reason, Record
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, refusal, why


# A first answer.


def test_the_first_answer_is_served_and_recorded(ledger: Ledger) -> None:
    got = claim(ledger.answer("p1", by="ann", id="m1", actor="Ann", digest="d"))
    assert ledger.record.claim == got
    assert (got.intent, got.pauses, got.attempt, got.delivery) == (Intent.ANSWER, ("p1",), 1, "m1")
    assert (got.lease, got.since, got.actor) == (30.0, 1_001.0, "Ann")
    (entry,) = ledger.record.consumptions
    assert (entry.pause, entry.generation, entry.attempt) == ("p1", 0, 1)
    assert entry.phase is Phase.RUNNING
    assert (entry.digest, entry.delivery, entry.actor) == ("d", "m1", "Ann")
    assert (entry.holder, entry.token, entry.since) == (got.holder, got.token, got.since)
    assert (entry.until, entry.outcome, entry.applied) == (None, None, False)


def test_several_pauses_are_answered_by_one_claim(ledger: Ledger) -> None:
    got = claim(ledger.answer("p2", "p1"))
    assert got.pauses == ("p2", "p1")
    assert {entry.token for entry in ledger.record.consumptions} == {got.token}


def test_a_grant_on_a_free_run_replaces_nobody(ledger: Ledger) -> None:
    verdict = ledger.answer("p1")
    assert isinstance(verdict, Granted)
    assert verdict.replaced is None


# Reasons, and which comes first.


def test_a_live_claim_is_in_progress(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.lease_left = 12.5
    verdict = refusal(ledger.answer("p1", by="b"))
    assert verdict.reason is Reason.IN_PROGRESS
    assert verdict.claim == first
    assert verdict.consumption == ledger.record.consumption("p1")
    assert verdict.retry_after == 12.5


@pytest.mark.parametrize("intent", list(Intent))
def test_a_live_claim_stops_every_intent(ledger: Ledger, intent: Intent) -> None:
    ledger.answer("p1")
    assert why(ledger.deliver(intent, by="b")) is Reason.IN_PROGRESS


def test_a_live_claim_comes_before_all_that_the_record_or_the_adapter_knows(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("parked", "p2")
    ledger.answer("p2")
    again = ledger.answer("p1", id="m1", reason=Reason.NOT_PARKED)
    assert why(again) is Reason.IN_PROGRESS


def test_a_settled_pause_is_consumed(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("finished")
    verdict = refusal(ledger.answer("p1", by="b"))
    assert verdict.reason is Reason.CONSUMED
    assert verdict.consumption == ledger.record.consumption("p1")
    assert (verdict.claim, verdict.retry_after) == (None, None)


def test_a_failed_pause_is_failed(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    assert why(ledger.answer("p1", by="b")) is Reason.FAILED


def test_a_pause_whose_holder_died_is_abandoned(ledger: Ledger) -> None:
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    verdict = refusal(ledger.answer("p1", by="b"))
    assert verdict.reason is Reason.ABANDONED
    assert verdict.claim == dead
    assert verdict.consumption == ledger.record.consumption("p1")


def test_another_pause_of_an_abandoned_run_is_abandoned_too(ledger: Ledger) -> None:
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    verdict = refusal(ledger.answer("p2", by="b"))
    assert verdict.reason is Reason.ABANDONED
    assert verdict.claim == dead
    assert verdict.consumption == ledger.record.consumption("p1")


@pytest.mark.parametrize("reason", list(Reason))
def test_what_the_adapter_holds_void_is_refused_for_its_reason(
    ledger: Ledger, reason: Reason
) -> None:
    assert refusal(ledger.answer("p1", reason=reason)) == Refused(reason)


def test_the_record_knows_better_than_the_adapter(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("finished")
    assert why(ledger.answer("p1", reason=Reason.NOT_PARKED)) is Reason.CONSUMED


def test_an_answer_that_would_be_served_once_more_is_void_where_nothing_waits_for_it(
    ledger: Ledger,
) -> None:
    ledger.policy = Policy(on_failure="retry", on_abandoned="serve")
    ledger.answer("p1")
    ledger.ends("failed")
    void = refusal(ledger.answer("p2", "p1", reason=Reason.NOT_PARKED))
    assert void == Refused(Reason.FAILED, None, ledger.entry("p1"), same=False)
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    void = refusal(ledger.answer("p1", reason=Reason.NOT_PARKED))
    assert void == Refused(Reason.CONSUMED, dead, ledger.entry("p1"), same=True)


@pytest.mark.parametrize("reason", [Reason.STALE_TICKET, Reason.SUPERSEDED])
def test_a_ticket_and_a_moved_run_say_more_than_the_record(ledger: Ledger, reason: Reason) -> None:
    ledger.policy = Policy(on_failure="retry")
    ledger.answer("p1")
    ledger.ends("failed")
    assert refusal(ledger.answer("p1", reason=reason)) == Refused(reason)


def test_an_adapter_that_holds_it_void_comes_before_an_abandoned_claim(ledger: Ledger) -> None:
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    verdict = refusal(ledger.answer("p2", reason=Reason.STALE_TICKET))
    assert verdict == Refused(Reason.STALE_TICKET, dead)


def test_one_closed_pause_closes_the_whole_delivery(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p2")
    verdict = refusal(ledger.answer("p2", "p1"))
    assert verdict.reason is Reason.CONSUMED
    assert verdict.consumption == ledger.record.consumption("p1")
    assert ledger.record.consumption("p2") is None


def test_a_closed_pause_does_not_close_another(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p2")
    assert claim(ledger.answer("p2")).pauses == ("p2",)


def test_a_lease_without_a_claim_stops_nobody(ledger: Ledger) -> None:
    ledger.lease_left = 5.0
    claim(ledger.answer("p1"))


def test_a_lease_that_is_just_over_is_over(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.lease_left = 1e-9
    assert why(ledger.answer("p2")) is Reason.IN_PROGRESS
    ledger.lease_left = 0.0
    assert why(ledger.answer("p2")) is Reason.ABANDONED
    ledger.lease_left = None
    assert why(ledger.answer("p2")) is Reason.ABANDONED


# What is recorded of an attempt.


def test_what_an_earlier_attempt_left_in_a_list_of_answers_is_not_part_of_it(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", taken=2)
    assert ledger.entry("p1").taken == 2
    ledger.ends("failed")
    ledger.releases()
    ledger.answer("p1", taken=3)
    assert ledger.entry("p1").taken == 2
    ledger.ends("parked", "p1")
    ledger.answer("p1", taken=3)
    assert ledger.entry("p1").taken == 3


# Tokens.


def test_tokens_follow_the_stores_clock(ledger: Ledger) -> None:
    assert claim(ledger.answer("p1")).token == 1_001_000


def test_tokens_grow_though_the_clock_does_not(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.ends("finished")
    ledger.now -= 500.0
    assert claim(ledger.answer("p2")).token == first.token + 1


def test_tokens_grow_though_the_record_was_deleted(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.record, ledger.lease_left = Record(), None
    assert claim(ledger.answer("p1")).token > first.token


def test_withdrawing_leaves_no_trace_but_the_token(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p2")
    before = ledger.record
    token = claim(ledger.answer("p2")).token
    after = withdraw(ledger.record, token, before)
    assert after is not None
    assert (after.token, after.claim, after.served) == (token, None, before.served)
    assert after.consumptions == before.consumptions


def test_withdrawing_a_take_over_brings_the_dead_claim_back(ledger: Ledger) -> None:
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    token = claim(ledger.go_on(by="b")).token
    after = withdraw(ledger.record, token, ledger.before)
    assert after is not None
    assert (after.claim, after.token) == (dead, token)


def test_nobody_settles_or_withdraws_a_claim_that_is_not_active(ledger: Ledger) -> None:
    token = claim(ledger.answer("p1")).token
    outcome = Outcome("finished")
    assert settle(ledger.record, token + 1, outcome, 0.0, True) is None
    assert withdraw(ledger.record, token + 1, ledger.before) is None
    ledger.ends("finished")
    assert settle(ledger.record, token, outcome, 0.0, True) is None
    assert withdraw(ledger.record, token, ledger.before) is None


def test_a_record_keeps_the_last_64_consumptions(ledger: Ledger) -> None:
    for number in range(KEEP + 1):
        ledger.answer(f"p{number}")
        ledger.ends("parked", f"p{number + 1}")
    assert KEEP == 64
    kept = [entry.pause for entry in ledger.record.consumptions]
    assert kept == [f"p{number}" for number in range(1, KEEP + 1)]
