"""What a claim's idempotency key is made of, and who goes on under the key of another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from remit_gates._decide import withdraw
from remit_gates._model import Intent, Phase, Reason
from remit_gates._policy import Policy
from tests.unit.worlds import Ledger, claim, why


RETRY = Policy(on_failure="retry", on_abandoned="serve")


def fails(ledger: Ledger) -> None:
    ledger.ends("failed")


def dies(ledger: Ledger) -> None:
    ledger.dies()


unfinished = pytest.mark.parametrize("stops", [fails, dies])


# Keys of one's own.


def test_the_key_names_the_pauses_in_no_particular_order(ledger: Ledger) -> None:
    assert claim(ledger.answer("p2", "p1")).key == "p1~0 p2~0"


def test_the_key_of_a_claim_without_pauses_is_where_the_run_stood(ledger: Ledger) -> None:
    assert claim(ledger.go_on(position="c7")).key == "@c7"


@pytest.mark.parametrize("intent", [Intent.START, Intent.CONTINUE, Intent.FORK])
def test_claims_of_which_neither_is_known_have_keys_of_their_own(
    ledger: Ledger, intent: Intent
) -> None:
    first = claim(ledger.deliver(intent))
    ledger.ends("finished")
    second = claim(ledger.deliver(intent))
    assert (first.key, second.key) == (f"#{first.token}", f"#{second.token}")


# What is left.


@pytest.mark.parametrize(("state", "kept"), [("failed", True), ("parked", False)])
def test_only_work_that_is_unfinished_leaves_its_key(
    ledger: Ledger, state: str, kept: bool
) -> None:
    key = claim(ledger.answer("p1")).key
    ledger.ends(state, "p2")
    assert ledger.record.left == (key if kept else "")


def test_work_that_is_finished_in_the_end_leaves_no_key(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.go_on()
    ledger.ends("finished")
    assert ledger.record.left == ""
    assert claim(ledger.go_on(position="c1")).key == "@c1"


def test_a_withdrawn_attempt_leaves_the_key_to_the_next(ledger: Ledger) -> None:
    key = claim(ledger.start()).key
    ledger.ends("failed")
    token = claim(ledger.go_on()).token
    after = withdraw(ledger.record, token, ledger.before)
    assert after is not None
    assert after.left == key
    ledger.record, ledger.lease_left = after, None
    assert claim(ledger.go_on()).key == key


def test_releasing_frees_the_claim_and_keeps_its_key(ledger: Ledger) -> None:
    got = claim(ledger.answer("p1"))
    ledger.dies()
    ledger.releases()
    assert (ledger.record.served, ledger.record.left) == (got.token, got.key)


def test_releasing_what_failed_keeps_its_key(ledger: Ledger) -> None:
    got = claim(ledger.answer("p1"))
    ledger.ends("failed")
    ledger.releases()
    assert (ledger.record.served, ledger.record.left) == (got.token, got.key)


# Going on.


@unfinished
@pytest.mark.parametrize("intent", [Intent.START, Intent.CONTINUE, Intent.FORK])
def test_going_on_without_an_answer_is_the_same_work(
    ledger: Ledger, intent: Intent, stops: Callable[[Ledger], None]
) -> None:
    first = claim(ledger.deliver(intent, position="c0"))
    stops(ledger)
    second = claim(ledger.go_on(position="c1"))
    assert (second.key, second.pauses) == (first.key, ())
    stops(ledger)
    assert claim(ledger.go_on(position="c2")).key == first.key


@unfinished
def test_going_on_with_part_of_what_was_answered_is_the_same_work(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    first = claim(ledger.answer("p1", "p2"))
    stops(ledger)
    ledger.releases(pause="p1")
    second = claim(ledger.go_on())
    assert (second.key, second.pauses) == (first.key, ("p2",))


def test_going_on_after_everything_was_released_is_the_same_work(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.dies()
    ledger.releases()
    second = claim(ledger.go_on(position="c9"))
    assert (second.key, second.pauses) == (first.key, ())


def test_what_a_dead_claim_does_counts_before_what_another_left(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    started = claim(ledger.start())
    ledger.dies()
    assert claim(ledger.go_on()).key == started.key


# New input.


@unfinished
@pytest.mark.parametrize("intent", [Intent.START, Intent.FORK])
def test_new_input_is_work_of_its_own(
    ledger: Ledger, intent: Intent, stops: Callable[[Ledger], None]
) -> None:
    ledger.answer("p1")
    stops(ledger)
    got = claim(ledger.deliver(intent))
    assert got.key == f"#{got.token}"


# Answers.


@unfinished
def test_another_attempt_at_the_same_pauses_is_the_same_work(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.policy = RETRY
    first = claim(ledger.answer("p1", "p2"))
    stops(ledger)
    assert claim(ledger.answer("p2", "p1")).key == first.key


@unfinished
def test_another_attempt_at_some_of_the_pauses_is_the_same_work(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.policy = RETRY
    first = claim(ledger.answer("p1", "p2"))
    stops(ledger)
    assert claim(ledger.answer("p2")).key == first.key


def test_an_answer_after_a_release_is_the_same_work(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1", "p2"))
    ledger.dies()
    ledger.releases()
    assert claim(ledger.answer("p1")).key == first.key


def test_an_answer_to_what_a_recovery_failed_at_is_the_same_work(ledger: Ledger) -> None:
    ledger.policy = RETRY
    first = claim(ledger.answer("p1", "p2"))
    ledger.dies()
    ledger.go_on()
    ledger.ends("failed")
    assert claim(ledger.answer("p1")).key == first.key


@unfinished
def test_an_answer_to_a_further_pause_is_work_of_its_own(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.policy = RETRY
    ledger.answer("p2")
    stops(ledger)
    assert claim(ledger.answer("p1", "p2", "p3")).key == "p1~0 p2~0 p3~0"


@unfinished
def test_an_answer_to_another_pause_is_work_of_its_own(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.policy = RETRY
    ledger.start()
    stops(ledger)
    assert claim(ledger.answer("p1")).key == "p1~0"


def test_an_answer_to_what_an_earlier_claim_failed_at_is_not_the_last_claims_work(
    ledger: Ledger,
) -> None:
    ledger.policy = RETRY
    ledger.answer("p1")
    ledger.ends("failed")
    started = claim(ledger.start())
    ledger.ends("failed")
    assert ledger.record.left == started.key
    assert claim(ledger.answer("p1")).key == "p1~0"


def test_an_answer_to_one_pause_of_each_of_two_claims_is_work_of_its_own(
    ledger: Ledger,
) -> None:
    ledger.policy = RETRY
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.answer("p2")
    ledger.ends("failed")
    assert claim(ledger.answer("p2", "p1")).key == "p1~0 p2~0"


def test_an_answer_to_nothing_is_nobodys_work(ledger: Ledger) -> None:
    ledger.start()
    ledger.ends("failed")
    got = claim(ledger.answer())
    assert got.key == f"#{got.token}"


def test_a_claim_on_many_pauses_keeps_its_key_though_a_record_keeps_fewer(
    ledger: Ledger,
) -> None:
    first = claim(ledger.answer(*(f"p{number}" for number in range(70))))
    ledger.ends("failed")
    second = claim(ledger.go_on())
    assert (second.key, set(second.pauses)) == (first.key, set(first.pauses))


# Where the run went on to other work without a claim.


@unfinished
def test_a_continue_with_other_work_has_a_key_of_its_own_and_adopts_nothing(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.answer("p1", position="c1")
    stops(ledger)
    assert ledger.record.origin == "c1"
    new = claim(ledger.go_on(position="c9", moved=True))
    assert (new.key, new.pauses, new.attempt) == ("@c9", (), 1)
    ledger.ends("finished")
    assert ledger.record.origin == ""
    left = ledger.record.closed("p1")
    assert left is not None
    assert left.phase is not Phase.SETTLED


@unfinished
@pytest.mark.parametrize("first", [Intent.ANSWER, Intent.CONTINUE])
def test_the_delivery_that_left_the_old_work_does_not_go_on_with_the_new(
    ledger: Ledger, stops: Callable[[Ledger], None], first: Intent
) -> None:
    ledger.deliver(first, *(["p1"] if first is Intent.ANSWER else ()), id="m")
    stops(ledger)
    if first is Intent.ANSWER:
        assert why(ledger.go_on(id="m", moved=True)) is Reason.CONSUMED
    claim(ledger.go_on(id="n", moved=True))
    ledger.ends("finished")
    assert why(ledger.go_on(id="m")) is Reason.CONSUMED


@unfinished
def test_a_release_keeps_where_the_work_began(
    ledger: Ledger, stops: Callable[[Ledger], None]
) -> None:
    ledger.answer("p1", position="c1")
    stops(ledger)
    ledger.releases()
    assert ledger.record.origin == "c1"
