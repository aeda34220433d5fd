"""Losing the swap: what a delivery came for may be gone by the time it looks again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._drive import drive
from remit_gates._model import Delivery, Intent, Outcome, Reason
from remit_gates._passage import LAST_POLL, TRIES, Judge, leave
from remit_gates._policy import Policy
from remit_gates._refusal import Verbs, refusal
from remit_gates.errors import InProgress
from tests.unit.worlds import World, holder


def serves(
    world: World, by: str, state: Any, *waiting: str, judge: Judge | None = None
) -> Callable[[], None]:
    """Somebody is served from the beginning to the end, when called."""

    def act() -> None:
        passage = world.enters(by, judge)
        world.waiting = list(waiting)
        drive(leave(passage, Outcome(state, waiting=waiting), applied=True), world)

    return act


def racing(world: World, *rivals: Callable[[], object]) -> None:
    """Let rivals act just before the claim of whoever comes next."""

    def step(call: Callable[[], Any]) -> Any:
        for rival in rivals:
            rival()
        return call()

    world.script("claim", step)


def test_a_racer_that_lost_the_swap_finds_the_winner(world: World) -> None:
    racing(world, lambda: world.enters("b"))
    denied = world.refuses("a")
    assert denied.verdict.reason is Reason.IN_PROGRESS
    assert denied.verdict.claim is not None
    assert denied.verdict.claim.holder == holder("b")


def test_a_bare_answer_that_lost_the_swap_does_not_answer_the_next_question(
    world: World,
) -> None:
    racing(world, serves(world, "b", "parked", "p2"))
    denied = world.refuses("a")
    assert denied.verdict.reason is Reason.CONSUMED
    assert denied.verdict.consumption == world.record.consumption("p1")
    assert not denied.waited


def test_a_bare_answer_that_lost_to_a_run_that_failed_is_told_so(world: World) -> None:
    racing(world, serves(world, "b", "failed"))
    assert world.refuses("a").verdict.reason is Reason.FAILED


def test_a_bound_answer_that_lost_the_swap_is_judged_again(world: World) -> None:
    world.waiting = ["p1", "p2"]
    racing(world, serves(world, "b", "parked", "p2"))
    assert world.enters("a", world.answers("a", "p2")).claim.pauses == ("p2",)


def test_a_continue_that_lost_the_swap_came_for_what_is_gone(world: World) -> None:
    racing(world, serves(world, "b", "parked", "p2"))
    assert world.refuses("a", world.continues("a")).verdict.reason is Reason.SUPERSEDED


def test_a_bare_answer_that_lost_to_a_continue_came_for_what_is_gone(world: World) -> None:
    racing(world, serves(world, "b", "parked", "p1", judge=world.continues("b")))
    denied = world.refuses("a")
    assert (denied.verdict.reason, denied.verdict.consumption) == (Reason.SUPERSEDED, None)


def test_a_bare_answer_that_lost_to_a_withdrawn_claim_is_served(world: World) -> None:
    racing(world, lambda: drive(leave(world.enters("b"), None), world))
    assert world.enters("a").claim.holder == holder("a")


def test_a_bare_answer_that_lost_to_one_that_died_is_told_so(world: World) -> None:
    def rival() -> None:
        world.enters("b")
        world.buried.add(holder("b"))

    racing(world, rival)
    denied = world.refuses("a", policy=Policy(on_abandoned="serve"))
    assert denied.verdict.reason is Reason.CONSUMED


def test_a_bare_answer_that_lost_to_a_withdrawn_take_over_is_judged_again(
    world: World,
) -> None:
    world.enters("a")
    world.buried.add(holder("a"))
    serve = Policy(on_abandoned="serve")
    racing(world, lambda: drive(leave(world.enters("b", policy=serve), None), world))
    passage = world.enters("c", policy=serve)
    assert passage.replaced is not None
    assert passage.replaced.holder == holder("a")


@pytest.mark.parametrize("intent", [Intent.START, Intent.FORK])
def test_new_input_that_lost_the_swap_came_for_nothing_that_could_be_gone(
    world: World, intent: Intent
) -> None:
    racing(world, serves(world, "b", "parked", "p2"))
    passage = world.enters("a", lambda waiting, record: Delivery(intent, holder("a")))
    assert passage.claim.intent is intent


def test_an_answer_that_is_void_since_another_was_served_meanwhile_is_told_so(
    world: World,
) -> None:
    def rival(call: Callable[[], Any]) -> Any:
        serves(world, "b", "finished")()
        return call()

    world.script("load", rival)
    denied = world.refuses("a", world.answers("a", "p1"))
    assert denied.verdict.reason is Reason.CONSUMED
    assert denied.verdict.consumption == world.record.consumption("p1")


def test_an_answer_that_is_void_while_another_is_being_served_is_told_so(world: World) -> None:
    def rival(call: Callable[[], Any]) -> Any:
        world.enters("b")
        world.waiting = []
        return call()

    world.script("load", rival)
    assert world.refuses("a").verdict.reason is Reason.IN_PROGRESS


def test_an_answer_that_is_void_when_nothing_moved_is_void(world: World) -> None:
    denied = world.refuses("a", world.answers("a", "p9"))
    assert denied.verdict.reason is Reason.NOT_PARKED
    assert world.calls == ["read", "load", "read"]


def test_a_run_that_always_moves_is_reported_as_busy(world: World) -> None:
    world.script("claim", *[lambda call: None] * TRIES)
    denied = world.refuses("a")
    assert (denied.verdict.reason, denied.verdict.claim) == (Reason.IN_PROGRESS, None)
    assert (denied.verdict.retry_after, denied.waited) == (LAST_POLL, True)
    assert world.calls.count("claim") == TRIES
    assert world.rows == {}
    error = refusal(denied, Verbs())
    assert isinstance(error, InProgress)
    assert error.definite
    assert "is still being served by one delivery after another" in str(error)


def test_a_run_that_moves_almost_always_is_entered_in_the_end(world: World) -> None:
    world.script("claim", *[lambda call: None] * (TRIES - 1))
    assert world.enters("a").claim.holder == holder("a")
