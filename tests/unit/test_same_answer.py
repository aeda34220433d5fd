"""Whether a refused answer is the one that was served, and may be treated as the first."""

from __future__ import annotations

from typing import Any

import pytest

from remit_gates._decide import Granted, Refused, Verdict, decide
from remit_gates._drive import drive
from remit_gates._model import Answer, Delivery, Intent, Outcome, Reason
from remit_gates._passage import Denied, Judge, leave
from remit_gates._policy import Policy
from remit_gates._refusal import Verbs, refusal, same_as_first
from remit_gates.errors import AlreadyConsumed
from tests.unit.worlds import RUN, Ledger, World, holder
from tests.unit.worlds import refusal as refusal_of


WAIT = Policy(on_conflict="wait", lease=5.0)


def denied(ledger: Ledger, verdict: Any, *pauses: str, waited: bool = False, **rest: Any) -> Denied:
    assert isinstance(verdict, Refused)
    answers = tuple(Answer(pause, "yes") for pause in pauses)
    delivery = Delivery(Intent.ANSWER, holder("b"), answers, **rest)
    return Denied(RUN, verdict, delivery, waited=waited)


@pytest.mark.parametrize(
    ("served", "refused", "same"),
    [("yes", "yes", True), ("yes", "no", False), (None, "yes", None), ("yes", None, None)],
)
def test_an_answer_is_the_same_when_both_digests_are_known_and_equal(
    ledger: Ledger, served: str | None, refused: str | None, same: bool | None
) -> None:
    ledger.answer("p1", digest=served)
    ledger.ends("finished")
    error = refusal(denied(ledger, ledger.answer("p1", digest=refused), "p1"), Verbs())
    assert isinstance(error, AlreadyConsumed)
    assert error.same_answer is same


def test_a_delivery_is_the_same_only_if_each_of_its_answers_is(ledger: Ledger) -> None:
    ledger.answer("p1", "p2")
    ledger.ends("finished")
    assert refusal_of(ledger.answer("p1", "p2")).same is True
    assert refusal_of(ledger.answer("p1", "p3")).same is False
    answers = (Answer("p1", "yes"), Answer("p2", "no"))
    delivery = Delivery(Intent.ANSWER, holder("b"), answers, bound=True)
    verdict = decide(ledger.record, delivery, None, Policy(), ledger.now)
    assert isinstance(verdict, Refused)
    assert verdict.same is False


@pytest.mark.parametrize(
    ("served", "refused", "same"),
    [
        (("yes", "yes"), ("yes", "yes"), True),
        (("yes", "yes"), ("yes", "no"), False),
        (("yes", "yes"), ("no", "yes"), False),
        (("yes", "yes"), ("yes", None), None),
        ((None, "yes"), ("yes", "yes"), None),
        ((None, "yes"), ("yes", "no"), False),
    ],
)
def test_one_different_answer_tells_more_than_one_unknown(
    ledger: Ledger,
    served: tuple[str | None, str],
    refused: tuple[str, str | None],
    same: bool | None,
) -> None:
    def comes(by: str, digests: tuple[str | None, ...]) -> Verdict:
        answers = tuple(map(Answer, ("p1", "p2"), digests))
        delivery = Delivery(Intent.ANSWER, holder(by), answers, bound=True)
        return decide(ledger.record, delivery, None, Policy(), ledger.now)

    first = comes("a", served)
    assert isinstance(first, Granted)
    ledger.record = first.record
    ledger.ends("finished")
    assert refusal_of(comes("b", refused)).same is same


def test_a_delivery_without_an_answer_is_never_the_same(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    assert refusal_of(ledger.answer(disturbs=("p1",))).same is None


@pytest.mark.parametrize("stops", ["failed", "dead"])
def test_every_closed_pause_says_whether_the_answer_is_the_same(ledger: Ledger, stops: str) -> None:
    ledger.answer("p1")
    if stops == "failed":
        ledger.ends("failed")
    else:
        ledger.dies()
    assert refusal_of(ledger.answer("p1")).same is True
    assert refusal_of(ledger.answer("p1", digest="no")).same is False


def test_a_refusal_for_another_reason_says_nothing_of_the_answer(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("parked", "p2")
    verdict = ledger.answer("p2", id="m1")
    error = refusal(denied(ledger, verdict, "p2"), Verbs())
    assert isinstance(error, AlreadyConsumed)
    assert error.same_answer is None


def first_or_not(
    world: World, judge: Any = None, state: Any = "finished", first: Any = None
) -> Denied:
    """A delivery that waited for the answer `yes` to `p1`, and was refused."""
    passage = world.enters("a", first, WAIT)
    outcome = Outcome(state, position="c1", waiting=("p2",) if state == "parked" else ())

    def end() -> None:
        drive(leave(passage, outcome, applied=True), world)
        world.position = "c1"

    world.later = [(51.0, end)]
    return world.refuses("b", judge or world.answers("b", "p1"), WAIT)


def test_the_same_bound_answer_that_waited_counts_as_the_first(world: World) -> None:
    assert same_as_first(first_or_not(world))


def test_another_answer_does_not(world: World) -> None:
    assert not same_as_first(first_or_not(world, world.answers("b", "p1", "no")))


@pytest.mark.parametrize(("second", "same"), [("yes", True), ("no", False), (None, False)])
def test_several_answers_count_as_the_first_only_all_together(
    world: World, second: str | None, same: bool
) -> None:
    def judged(by: str, other: str | None) -> Judge:
        answers = (Answer("p1", "yes"), Answer("p2", other))
        return lambda waiting, record: Delivery(
            Intent.ANSWER, holder(by), answers, bound=True, position=world.position
        )

    refused = first_or_not(world, judged("b", second), first=judged("a", "yes"))
    assert same_as_first(refused) is same


def test_a_bare_answer_does_not(world: World) -> None:
    assert not same_as_first(first_or_not(world, world.answers("b")))


@pytest.mark.parametrize("state", ["parked", "failed"])
def test_an_answer_to_a_run_that_did_not_finish_does_not(world: World, state: str) -> None:
    assert not same_as_first(first_or_not(world, state=state))


def test_an_answer_that_did_not_wait_does_not(world: World) -> None:
    first_or_not(world)
    assert not same_as_first(world.refuses("c", world.answers("c", "p1")))


def test_an_answer_to_a_run_that_moved_on_since_does_not(world: World) -> None:
    judged = first_or_not(world)
    assert judged.delivery is not None
    elsewhere = Delivery(
        Intent.ANSWER, holder("b"), judged.delivery.answers, bound=True, position="c9"
    )
    assert not same_as_first(Denied(RUN, judged.verdict, elsewhere, waited=True))


def test_nothing_that_is_not_known_counts_as_the_first(ledger: Ledger) -> None:
    ledger.answer("p1")
    entry = ledger.entry("p1")
    refused = Refused(Reason.CONSUMED, consumption=entry)
    assert not same_as_first(Denied(RUN, refused, waited=True))
    assert not same_as_first(denied(ledger, refused, "p1", waited=True, bound=True))
    unknown = Refused(Reason.CONSUMED)
    assert not same_as_first(denied(ledger, unknown, "p1", waited=True, bound=True))
