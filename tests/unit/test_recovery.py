"""How a run goes on after its claim ended: settling, re-opening, going on."""

from __future__ import annotations

import pytest

from remit_gates._decide import Granted
from remit_gates._model import Phase, Reason
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, why


# Settling.


@pytest.mark.parametrize(
    ("state", "phase"),
    [("finished", Phase.SETTLED), ("parked", Phase.SETTLED), ("failed", Phase.FAILED)],
)
def test_settling_frees_the_claim_and_says_what_became_of_the_run(
    ledger: Ledger, state: str, phase: Phase
) -> None:
    token = claim(ledger.answer("p1")).token
    ledger.ends(state, "p2", applied=True)
    entry = ledger.entry("p1")
    assert (ledger.record.claim, ledger.record.served) == (None, token)
    assert (entry.phase, entry.until, entry.applied) == (phase, ledger.now + 0.5, True)
    assert entry.outcome is not None
    assert (entry.outcome.state, entry.outcome.waiting) == (state, ("p2",))
    assert entry.reopened is None


def test_settling_leaves_what_another_claim_did_alone(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p2")
    before = ledger.entry("p1")
    ledger.answer("p2")
    ledger.ends("failed")
    assert ledger.entry("p1") == before


def test_an_answer_that_was_taken_in_once_stays_taken_in(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed", applied=True)
    ledger.go_on()
    ledger.ends("failed", applied=False)
    assert ledger.entry("p1").applied


def test_an_answer_that_was_never_taken_in_is_not_said_to_be(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed", applied=False)
    assert not ledger.entry("p1").applied


# Re-opening.


def test_the_next_question_of_the_same_name_is_asked_anew(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p1")
    assert ledger.entry("p1").reopened == "anew"
    second = claim(ledger.answer("p1", by="b"))
    assert (second.key, second.attempt) == ("p1~1", 1)
    assert [entry.generation for entry in ledger.record.consumptions] == [0, 1]
    assert ledger.record.consumptions[0].reopened == "anew"


def test_questions_of_one_name_count_up(ledger: Ledger) -> None:
    keys = []
    for _ in range(3):
        keys.append(claim(ledger.answer("p1")).key)
        ledger.ends("parked", "p1")
    assert keys == ["p1~0", "p1~1", "p1~2"]


def test_the_last_question_of_a_name_stays_closed(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p1")
    ledger.answer("p1")
    ledger.ends("finished")
    assert why(ledger.answer("p1")) is Reason.CONSUMED


def test_a_retry_within_a_later_generation_stays_in_it(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p1")
    ledger.answer("p1", id="m2")
    ledger.ends("failed")
    again = claim(ledger.answer("p1", id="m2"))
    assert (again.key, again.attempt) == ("p1~1", 2)


def test_the_question_that_a_recovery_asks_again_is_the_old_one(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.dies()
    ledger.go_on()
    ledger.ends("parked", "p1", applied=False)
    assert ledger.entry("p1").reopened == "again"
    third = claim(ledger.answer("p1", by="b"))
    assert (third.key, third.attempt) == (first.key, 3)
    assert len(ledger.record.consumptions) == 1


def test_the_question_that_a_recovery_asks_after_the_answer_was_taken_in_is_the_next(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("failed", applied=True)
    ledger.go_on()
    ledger.ends("parked", "p1", applied=True)
    assert ledger.entry("p1").reopened == "anew"
    assert why(ledger.answer("p1", id="m1")) is Reason.CONSUMED
    assert claim(ledger.answer("p1", id="m2")).key == "p1~1"


@pytest.mark.parametrize(("applied", "asked"), [(True, "anew"), (False, "again")])
def test_a_recovery_asks_the_next_question_once_it_took_the_answer_in(
    ledger: Ledger, applied: bool, asked: str
) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.go_on()
    ledger.ends("parked", "p1", applied=applied)
    assert ledger.entry("p1").reopened == asked


@pytest.mark.parametrize("state", ["failed", "finished"])
def test_only_a_run_that_parks_reopens_anything(ledger: Ledger, state: str) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p2")
    ledger.answer("p2")
    ledger.ends(state, "p1", "p2")
    assert (ledger.entry("p1").reopened, ledger.entry("p2").reopened) == (None, None)


def test_a_recovery_in_the_same_instant_is_not_taken_for_the_answer(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.now -= 1
    ledger.go_on()
    ledger.ends("parked", "p1", applied=False)
    assert ledger.entry("p1").reopened == "again"


def test_a_run_that_parks_reopens_what_waits_though_another_claim_closed_it(
    ledger: Ledger,
) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.start()
    ledger.ends("parked", "p1")
    entry = ledger.entry("p1")
    assert (entry.reopened, entry.phase) == ("again", Phase.FAILED)
    assert claim(ledger.answer("p1", by="b")).attempt == 2


def test_what_was_reopened_stays_as_it_was(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p1", "p2")
    ledger.answer("p2")
    ledger.ends("parked", "p1")
    assert ledger.entry("p1").reopened == "anew"
    assert ledger.entry("p2").reopened is None


# Going on.


def test_going_on_adopts_what_failed_with_its_answer_and_its_key(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1", "p2", id="m1", actor="Ann", digest="d"))
    ledger.ends("failed", applied=True)
    second = claim(ledger.go_on(by="b", actor="Bob"))
    assert (second.key, second.attempt, second.pauses) == (first.key, 2, ("p1", "p2"))
    assert second.token > first.token
    entry = ledger.entry("p1")
    assert (entry.digest, entry.delivery, entry.actor) == ("d", "m1", "Ann")
    assert (entry.since, entry.applied) == (first.since, True)
    assert (entry.holder, entry.token) == (second.holder, second.token)
    assert (entry.phase, entry.until, entry.outcome) == (Phase.RUNNING, None, None)


def test_going_on_takes_over_from_a_dead_holder_whatever_the_policy(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.dies()
    verdict = ledger.go_on(by="b")
    assert isinstance(verdict, Granted)
    assert verdict.replaced == first
    assert (verdict.claim.key, verdict.claim.attempt) == (first.key, 2)
    assert verdict.claim.token > first.token


def test_going_on_time_and_again_keeps_the_key(ledger: Ledger) -> None:
    keys = [claim(ledger.answer("p1")).key]
    ledger.dies()
    for _ in range(2):
        keys.append(claim(ledger.go_on()).key)
        ledger.dies()
    assert claim(ledger.go_on()).attempt == 4
    assert set(keys) == {"p1~0"}


def test_going_on_adopts_nothing_that_was_finished(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked")
    got = claim(ledger.go_on(position="c1"))
    assert (got.pauses, got.key, got.attempt) == ((), "@c1", 1)
    assert ledger.entry("p1").phase is Phase.SETTLED


def test_going_on_adopts_nothing_that_new_input_left_behind(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.start()
    ledger.ends("failed")
    assert claim(ledger.go_on()).pauses == ()


def test_going_on_adopts_nothing_that_a_dead_start_left_behind(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.start()
    ledger.dies()
    assert claim(ledger.go_on()).pauses == ()


def test_going_on_adopts_nothing_that_was_released(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.releases()
    assert claim(ledger.go_on()).pauses == ()


def test_going_on_is_refused_when_its_adapter_holds_it_void(ledger: Ledger) -> None:
    assert why(ledger.go_on(reason=Reason.SUPERSEDED)) is Reason.SUPERSEDED


# New input and forks.


def test_new_input_and_forks_consume_nothing(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    before = ledger.record.consumptions
    started = claim(ledger.start(position="c3"))
    assert (started.pauses, started.key, started.attempt) == ((), "@c3", 1)
    assert ledger.record.consumptions == before


def test_new_input_replaces_a_dead_holder(ledger: Ledger) -> None:
    dead = claim(ledger.answer("p1"))
    ledger.dies()
    verdict = ledger.start(by="b")
    assert isinstance(verdict, Granted)
    assert verdict.replaced == dead


# What is left behind when somebody else takes over.


def test_what_a_dead_holder_left_is_abandoned_after_somebody_else_went_by(
    ledger: Ledger,
) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.start()
    ledger.ends("parked", "p2")
    assert why(ledger.answer("p1")) is Reason.ABANDONED
    ledger.policy = Policy(on_abandoned="serve")
    assert claim(ledger.answer("p1")).attempt == 2
