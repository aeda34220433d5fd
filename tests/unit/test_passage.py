"""Entering, waiting, leaving, renewing: flows on a fake store and a fake clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._drive import drive
from remit_gates._model import Outcome, Reason, Record
from remit_gates._passage import TRIES, Judge, enter, leave
from remit_gates._policy import Policy
from remit_gates.errors import OutcomeUnknown, StoreUnavailable, UsageError
from tests.unit.worlds import RUN, World, holder, landed, lost


def serves(
    world: World, by: str, state: Any, *waiting: str, judge: Judge | None = None
) -> Callable[[], None]:
    """Somebody is served from the beginning to the end, when called."""

    def act() -> None:
        passage = world.enters(by, judge)
        world.waiting = list(waiting)
        drive(leave(passage, Outcome(state, waiting=waiting), applied=True), world)

    return act


# Entering.


def test_the_first_delivery_gets_in_and_its_claim_is_in_the_store(world: World) -> None:
    passage = world.enters("a")
    assert world.calls == ["read", "load", "claim"]
    assert world.record == passage.record
    assert world.record.claim == passage.claim
    assert passage.claim.holder == holder("a")
    assert world.rows[RUN].version == passage.version
    assert (passage.run, passage.before, passage.replaced) == (RUN, Record(), None)
    assert (passage.loaded, passage.delivery.answers[0].pause) == (["p1"], "p1")
    assert (passage.entered, passage.deadline) == (50.0, 80.0)


def test_the_lease_counts_from_before_the_claim_was_sent(world: World) -> None:
    def slow(call: Callable[[], Any]) -> Any:
        world.clock += 4.0
        return call()

    world.script("claim", slow)
    passage = world.enters("a")
    assert (passage.entered, passage.deadline) == (50.0, 80.0)


def test_a_loser_is_refused_before_it_loads_and_writes_nothing(world: World) -> None:
    winner = world.enters("a")
    world.calls.clear()
    denied = world.refuses("b")
    assert world.calls == ["read", "dead"]
    assert denied.verdict.reason is Reason.IN_PROGRESS
    assert denied.verdict.claim == winner.claim
    assert denied.verdict.consumption == winner.record.consumption("p1")
    assert denied.verdict.retry_after == 30.0
    assert (denied.delivery, denied.loaded, denied.waited) == (None, None, False)


def test_a_late_loser_is_refused_after_the_load_and_writes_nothing(world: World) -> None:
    serves(world, "a", "finished")()
    world.calls.clear()
    denied = world.refuses("b", world.answers("b", "p1"))
    assert world.calls == ["read", "load"]
    assert denied.verdict.reason is Reason.CONSUMED
    assert denied.delivery is not None
    assert (denied.delivery.holder, denied.loaded) == (holder("b"), [])


def test_a_holder_that_is_known_dead_is_not_waited_for(world: World) -> None:
    world.enters("a")
    world.buried.add(holder("a"))
    assert world.refuses("b").verdict.reason is Reason.ABANDONED
    passage = world.enters("b", policy=Policy(on_abandoned="serve"))
    assert passage.replaced is not None
    assert passage.replaced.holder == holder("a")


def test_a_holder_that_is_known_dead_is_dead_to_the_end_of_its_lease(world: World) -> None:
    world.enters("a")
    world.buried.add(holder("a"))
    world.clock += 29.5
    assert world.refuses("b").verdict.reason is Reason.ABANDONED


def test_a_claim_of_which_the_store_knows_no_lease_is_over(world: World) -> None:
    world.enters("a")
    world.rows[RUN].expires = None
    assert world.refuses("b").verdict.reason is Reason.ABANDONED


def test_nobody_is_asked_about_a_holder_whose_lease_is_over(world: World) -> None:
    world.enters("a")
    world.clock += 30.0
    world.calls.clear()
    assert world.refuses("b").verdict.reason is Reason.ABANDONED
    assert world.calls == ["read", "load"]


def test_a_policy_of_bound_answers_refuses_a_bare_one(world: World) -> None:
    bound = Policy(answers="bound")
    with pytest.raises(UsageError, match=r"order-17.*does not name the pause.*nothing ran"):
        world.comes("a", policy=bound)
    assert world.rows == {}
    world.enters("a", world.answers("a", "p1"), bound)


def test_a_policy_of_bound_answers_asks_nothing_of_other_intents(world: World) -> None:
    world.enters("a", world.continues("a"), Policy(answers="bound"))


def test_any_answer_will_do_by_default(world: World) -> None:
    assert not world.enters("a").delivery.bound


# Losing the swap.


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


def test_a_delivery_that_always_loses_gives_up(world: World) -> None:
    world.script("claim", *[lambda call: None] * TRIES)
    verdict = world.refuses("a").verdict
    assert (verdict.reason, verdict.claim) == (Reason.IN_PROGRESS, None)
    assert world.calls.count("claim") == TRIES
    assert world.rows == {}


# An acknowledgement that is lost.


def test_a_claim_whose_acknowledgement_was_lost_is_found_in_the_store(world: World) -> None:
    world.script("claim", landed)
    passage = world.enters("a")
    assert world.calls == ["read", "load", "claim", "read"]
    assert (passage.version, passage.record) == (world.rows[RUN].version, world.record)
    assert (passage.before, passage.deadline) == (Record(), 80.0)
    assert drive(leave(passage, Outcome("finished")), world)


def test_a_claim_that_never_landed_is_sent_again(world: World) -> None:
    world.script("claim", lost)
    passage = world.enters("a")
    assert world.calls == ["read", "load", "claim", "read", "load", "claim"]
    assert world.record == passage.record


def test_a_claim_that_never_landed_is_not_mistaken_for_a_rivals(world: World) -> None:
    def rival(call: Callable[[], Any]) -> Any:
        world.enters("b")
        raise OutcomeUnknown("no answer")

    world.script("claim", rival)
    assert world.refuses("a").verdict.reason is Reason.IN_PROGRESS


def test_a_store_that_never_says_whether_claims_land_is_given_up(world: World) -> None:
    world.script("claim", *[lost] * TRIES)
    with pytest.raises(OutcomeUnknown, match=r"order-17.*Nothing ran.*30 s") as caught:
        world.comes("a")
    assert not caught.value.definite


def test_a_store_that_cannot_be_reached_is_reported_as_it_is(world: World) -> None:
    def down(call: Callable[[], Any]) -> Any:
        raise StoreUnavailable("down")

    world.script("claim", down)
    with pytest.raises(StoreUnavailable):
        world.comes("a")


@pytest.mark.parametrize("reached", [landed, lost])
def test_a_delivery_that_is_interrupted_takes_its_claim_back(
    world: World, reached: Callable[[Callable[[], Any]], Any]
) -> None:
    def interrupt(call: Callable[[], Any]) -> Any:
        with pytest.raises(OutcomeUnknown):
            reached(call)
        raise KeyboardInterrupt

    world.script("claim", interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.comes("a")
    assert world.record.claim is None
    assert [row.expires for row in world.rows.values()] == [None] * len(world.rows)
    assert world.calls[:3] == ["read", "load", "claim"]
    assert "claim" not in world.calls[3:]
    assert world.enters("b").claim.attempt == 1


def test_an_interrupted_take_over_leaves_the_dead_claim_as_dead_as_it_was(
    world: World,
) -> None:
    world.enters("a")
    world.buried.add(holder("a"))

    def interrupt(call: Callable[[], Any]) -> Any:
        call()
        raise KeyboardInterrupt

    world.script("claim", interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.comes("b", policy=Policy(on_abandoned="serve"))
    assert world.rows[RUN].expires == world.clock
    world.buried.clear()
    assert world.refuses("c").verdict.reason is Reason.ABANDONED


def test_a_store_that_fails_meanwhile_does_not_hide_the_interruption(world: World) -> None:
    def interrupt(call: Callable[[], Any]) -> Any:
        raise KeyboardInterrupt

    def down(call: Callable[[], Any]) -> Any:
        raise StoreUnavailable("down")

    world.script("claim", interrupt)
    world.script("read", lambda call: call(), down)
    with pytest.raises(KeyboardInterrupt):
        world.comes("a")


def test_a_delivery_that_is_dropped_in_mid_claim_just_ends(world: World) -> None:
    flow = enter(RUN, holder("a"), Policy(), world.answers("a"))
    op = next(flow)
    while type(op).__name__ != "Swap":
        op = flow.send(op.on(world))
    flow.close()
    assert world.rows == {}
