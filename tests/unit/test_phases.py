"""The phase of a run, for every way in which its record can have come about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remit_gates._decide import Granted, Refused, decide, release, settle, withdraw
from remit_gates._model import Answer, Delivery, Holder, Intent, Outcome, Record, Snapshot
from remit_gates._phases import RunPhase, phase
from remit_gates._policy import Policy


NOW = 1_700_000_000.0
HOLDER = Holder("host", 1, "2", "nonce")
ANSWER = Delivery(Intent.ANSWER, HOLDER, (Answer("p"), Answer("q")), bound=True)
CONTINUE = Delivery(Intent.CONTINUE, HOLDER)
START = Delivery(Intent.START, HOLDER)
NEW = Record()
FAILED = Outcome("failed", detail="ValueError")


def granted(delivery: Delivery, record: Record = NEW) -> Record:
    verdict = decide(record, delivery, None, Policy(), NOW)
    assert isinstance(verdict, Granted)
    return verdict.record


def ended(record: Record, outcome: Outcome) -> Record:
    after = settle(record, record.token, outcome, NOW + 1, True)
    assert after is not None
    return after


def released(record: Record, pause: str | None = None) -> Record:
    after = release(record, 0.0, NOW + 2, pause=pause)
    assert not isinstance(after, Refused)
    return after


def seen(record: Record, left: float | None = None) -> Snapshot:
    return Snapshot(1, record, left, NOW + 3)


@pytest.mark.parametrize("delivery", [ANSWER, CONTINUE, START])
def test_a_claim_is_running_while_it_lives(delivery: Delivery) -> None:
    record = granted(delivery)
    assert phase(seen(record, 0.1)) is RunPhase.RUNNING
    assert phase(seen(record, 0.1), dead=True) is RunPhase.ABANDONED
    assert phase(seen(record, 0.0)) is RunPhase.ABANDONED
    assert phase(seen(record, -5.0)) is RunPhase.ABANDONED
    assert phase(seen(record, None)) is RunPhase.ABANDONED


@pytest.mark.parametrize("delivery", [ANSWER, CONTINUE, START])
@pytest.mark.parametrize("outcome", [Outcome("finished"), Outcome("parked", waiting=("p", "z"))])
def test_what_ended_well_is_settled(delivery: Delivery, outcome: Outcome) -> None:
    assert phase(seen(ended(granted(delivery), outcome))) is RunPhase.SETTLED


@pytest.mark.parametrize("delivery", [ANSWER, CONTINUE, START])
def test_what_failed_is_failed_until_it_goes_on(delivery: Delivery) -> None:
    failed = ended(granted(delivery), FAILED)
    assert phase(seen(failed)) is RunPhase.FAILED
    going = granted(CONTINUE, failed)
    assert phase(seen(going, 1.0)) is RunPhase.RUNNING
    assert phase(seen(ended(going, FAILED))) is RunPhase.FAILED
    assert phase(seen(ended(going, Outcome("finished")))) is RunPhase.SETTLED


def test_what_was_released_is_settled_once_all_of_it_is() -> None:
    failed = ended(granted(ANSWER), FAILED)
    half = released(failed, "p")
    assert phase(seen(half)) is RunPhase.FAILED
    assert phase(seen(released(half, "q"))) is RunPhase.SETTLED
    assert phase(seen(released(failed))) is RunPhase.SETTLED
    assert phase(seen(released(granted(ANSWER)))) is RunPhase.SETTLED


def test_an_abandoned_continue_that_was_released_still_has_work_left() -> None:
    """There is no pause that a release could have re-opened."""
    assert phase(seen(released(granted(CONTINUE)))) is RunPhase.FAILED


def test_a_withdrawn_claim_was_never_there() -> None:
    for before in (Record(), ended(granted(ANSWER), FAILED)):
        record = granted(CONTINUE, before)
        after = withdraw(record, record.token, before)
        assert after is not None
        assert phase(seen(after)) is phase(seen(before))


def test_an_earlier_failure_does_not_make_a_later_success_failed() -> None:
    failed = ended(granted(ANSWER), FAILED)
    other = replace(ANSWER, answers=(Answer("r"),))
    assert phase(seen(ended(granted(other, failed), Outcome("finished")))) is RunPhase.SETTLED


def test_a_run_without_a_record_is_settled() -> None:
    assert phase(Snapshot(None, Record(), None, NOW)) is RunPhase.SETTLED


def test_phases_with_a_claim() -> None:
    assert [one.value for one in RunPhase if one.claimed] == ["running", "abandoned"]
