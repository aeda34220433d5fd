"""Waiting for another delivery to end, on a clock that moves when somebody sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._drive import drive
from remit_gates._model import Delivery, Intent, Outcome, Phase, Reason
from remit_gates._passage import FIRST_POLL, LAST_POLL, Passage, leave
from remit_gates._policy import Policy
from tests.unit.worlds import World, holder


WAIT = Policy(on_conflict="wait", wait_timeout=10.0, lease=5.0)


def ends(
    world: World, passage: Passage, state: Any = "finished", *waiting: str
) -> Callable[[], bool]:
    """The run of `passage` ends, when called."""

    def end() -> bool:
        outcome = Outcome(state, position=world.position, waiting=waiting)
        world.waiting = list(waiting)
        return drive(leave(passage, outcome, applied=True), world)

    return end


def test_a_delivery_that_waits_looks_ever_less_often(world: World) -> None:
    world.enters("a")
    denied = world.refuses("b", policy=WAIT)
    assert denied.verdict.reason is Reason.IN_PROGRESS
    assert denied.waited
    assert world.naps[:3] == [FIRST_POLL, 2 * FIRST_POLL, 4 * FIRST_POLL]
    assert max(world.naps) == LAST_POLL
    assert sum(world.naps) == pytest.approx(10.0)
    assert "load" not in world.calls[3:]


def test_a_timeout_of_zero_looks_once(world: World) -> None:
    world.enters("a")
    denied = world.refuses("b", policy=Policy(on_conflict="wait", wait_timeout=0.0))
    assert denied.verdict.reason is Reason.IN_PROGRESS
    assert world.naps == []


def test_a_delivery_waits_for_its_timeout_in_all(world: World) -> None:
    first = world.enters("a", policy=WAIT)
    world.later = [(53.0, ends(world, first, "parked", "p2"))]

    def rival(call: Callable[[], Any]) -> Any:
        world.enters("c", world.answers("c", "p2"), Policy())
        return call()

    world.script("claim", rival)
    denied = world.refuses("b", world.answers("b", "p2"), WAIT)
    assert denied.verdict.reason is Reason.IN_PROGRESS
    assert world.clock == pytest.approx(60.0)


def test_a_bound_answer_that_waited_is_refused_with_the_winners_outcome(world: World) -> None:
    world.later = [(52.0, ends(world, world.enters("a"), "finished"))]
    denied = world.refuses("b", world.answers("b", "p1"), WAIT)
    assert denied.verdict.reason is Reason.CONSUMED
    assert denied.waited
    assert denied.verdict.consumption is not None
    assert denied.verdict.consumption.phase is Phase.SETTLED


def test_a_bound_answer_to_another_open_pause_is_served_when_the_run_is_free(
    world: World,
) -> None:
    world.waiting = ["p1", "p2"]
    world.later = [(52.0, ends(world, world.enters("a"), "parked", "p2"))]
    assert world.enters("b", world.answers("b", "p2"), WAIT).claim.pauses == ("p2",)


def test_a_bare_answer_that_waited_never_answers_the_next_question(world: World) -> None:
    world.later = [(52.0, ends(world, world.enters("a"), "parked", "p2"))]
    denied = world.refuses("b", policy=WAIT)
    assert denied.verdict.reason is Reason.CONSUMED
    assert denied.waited
    assert denied.verdict.consumption == world.record.consumption("p1")


def test_a_bare_answer_that_waited_for_a_withdrawn_claim_is_served(world: World) -> None:
    first = world.enters("a")
    world.later = [(52.0, lambda: drive(leave(first, None), world))]
    assert world.enters("b", policy=WAIT).claim.pauses == ("p1",)


def test_a_bare_answer_that_waited_for_a_withdrawn_take_over_is_judged_again(
    world: World,
) -> None:
    dead = world.enters("a").claim
    world.buried.add(holder("a"))
    second = world.enters("b", policy=Policy(on_abandoned="serve"))
    world.later = [(52.0, lambda: drive(leave(second, None), world))]
    policy = Policy(on_conflict="wait", on_abandoned="serve")
    assert world.enters("c", policy=policy).replaced == dead


def test_a_continue_that_waited_for_another_to_end_came_for_what_is_gone(
    world: World,
) -> None:
    world.later = [(52.0, ends(world, world.enters("a"), "parked", "p2"))]
    denied = world.refuses("b", world.continues("b"), WAIT)
    assert denied.verdict.reason is Reason.SUPERSEDED


@pytest.mark.parametrize("intent", [Intent.START, Intent.FORK])
def test_new_input_that_waited_for_another_to_end_is_served(world: World, intent: Intent) -> None:
    first = world.enters("a", lambda waiting, record: Delivery(intent, holder("a")))
    world.later = [(52.0, ends(world, first, "finished"))]
    second = world.enters("b", lambda waiting, record: Delivery(intent, holder("b")), WAIT)
    assert second.claim.token > first.claim.token


@pytest.mark.parametrize("serve", [True, False])
def test_a_bare_answer_that_waited_for_one_that_died_follows_the_policy(
    world: World, serve: bool
) -> None:
    policy = Policy(on_conflict="wait", lease=5.0, on_abandoned="serve" if serve else "refuse")
    world.enters("a", policy=policy)
    if serve:
        assert world.enters("b", policy=policy).claim.attempt == 2
    else:
        assert world.refuses("b", policy=policy).verdict.reason is Reason.ABANDONED
    assert world.clock == pytest.approx(55.0, abs=LAST_POLL)


def test_a_bare_answer_never_answers_what_a_dead_holder_had_come_to_since(
    world: World,
) -> None:
    policy = Policy(on_conflict="wait", lease=5.0, on_abandoned="serve")
    first = world.enters("a", policy=policy)
    world.waiting = ["p2"]
    denied = world.refuses("b", policy=policy)
    assert denied.verdict.reason is Reason.ABANDONED
    assert denied.verdict.claim == first.claim
    assert denied.verdict.consumption == world.record.consumption("p1")


def test_a_bare_answer_that_waited_for_two_remembers_the_first(world: World) -> None:
    policy = Policy(on_conflict="wait", lease=5.0, on_abandoned="serve")
    first = world.enters("a", policy=policy)

    def succeed() -> None:
        ends(world, first, "parked", "p2")()
        world.enters("c", policy=policy)

    world.later = [(51.0, succeed), (53.0, lambda: world.buried.add(holder("c")))]
    denied = world.refuses("b", policy=policy)
    assert denied.verdict.reason is Reason.CONSUMED
    assert denied.verdict.consumption == world.record.consumption("p2")


def test_a_continue_that_waited_for_one_that_died_recovers_the_run(world: World) -> None:
    first = world.enters("a", policy=WAIT)
    passage = world.enters("b", world.continues("b"), WAIT)
    assert passage.replaced == first.claim
    assert (passage.claim.key, passage.claim.attempt) == (first.claim.key, 2)


def test_a_holder_that_dies_while_another_waits_is_noticed_at_once(world: World) -> None:
    world.enters("a")
    world.later = [(51.0, lambda: world.buried.add(holder("a")))]
    world.enters("b", policy=Policy(on_conflict="wait", on_abandoned="serve"))
    assert world.clock < 53.0


def test_a_refusal_without_a_wait_does_not_claim_to_have_waited(world: World) -> None:
    ends(world, world.enters("a"))()
    denied = world.refuses("b", world.answers("b", "p1"), WAIT)
    assert denied.verdict.reason is Reason.CONSUMED
    assert not denied.waited
