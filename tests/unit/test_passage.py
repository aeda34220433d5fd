"""Entering a run: nothing is written by a loser, and no acknowledgement is missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._drive import drive
from remit_gates._model import Outcome, Reason, Record
from remit_gates._passage import TRIES, leave
from remit_gates._policy import Policy
from remit_gates.errors import OutcomeUnknown, StoreUnavailable, UsageError
from tests.unit.worlds import RUN, World, down, holder, landed, lost


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
    drive(leave(world.enters("a"), Outcome("finished"), applied=True), world)
    world.waiting = []
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


def test_a_holder_that_ended_its_run_and_died_while_it_was_looked_at_abandoned_nothing(
    world: World,
) -> None:
    winner = world.enters("a")

    def ends_and_exits(look: Callable[[], Any]) -> Any:
        drive(leave(winner, Outcome("finished")), world)
        world.buried.add(holder("a"))
        return look()

    world.script("dead", ends_and_exits)
    assert world.refuses("b").verdict.reason is Reason.CONSUMED


def test_a_claim_of_which_the_store_knows_no_lease_is_over(world: World) -> None:
    world.enters("a")
    world.rows[RUN].expires = None
    assert world.refuses("b").verdict.reason is Reason.ABANDONED


def test_nobody_is_asked_about_a_holder_whose_lease_is_over(world: World) -> None:
    world.enters("a")
    world.clock += 30.0
    world.calls.clear()
    assert world.refuses("b").verdict.reason is Reason.ABANDONED
    assert "dead" not in world.calls


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


def test_a_claim_that_the_store_certainly_did_not_take_is_reported_so(world: World) -> None:
    world.script("claim", down)
    with pytest.raises(StoreUnavailable):
        world.comes("a")


@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["one token", "two tokens"])
def test_of_two_claims_that_were_sent_the_one_that_landed_counts(
    world: World, pause: float
) -> None:
    sent: list[Callable[[], Any]] = []

    def under_way(call: Callable[[], Any]) -> Any:
        sent.append(call)
        raise OutcomeUnknown("no answer")

    def arrives(call: Callable[[], Any]) -> Any:
        sent[0]()
        return call()

    world.script("claim", under_way, arrives)
    world.script("read", lambda call: call(), world.slowly(pause))
    passage = world.enters("a")
    assert passage.record == world.record
    assert passage.claim == world.record.claim
    assert (passage.entered, passage.deadline) == (50.0, 80.0)
    assert passage.version == world.rows[RUN].version
    assert drive(leave(passage, Outcome("finished")), world)


def test_a_store_that_fails_after_a_claim_was_sent_leaves_it_open_whether_it_landed(
    world: World,
) -> None:
    world.script("claim", landed)
    world.script("read", lambda call: call(), down)
    with pytest.raises(OutcomeUnknown, match=r"order-17.*\(down\).*Nothing ran") as caught:
        world.comes("a")
    assert not caught.value.definite
    assert isinstance(caught.value.__cause__, StoreUnavailable)


def test_a_store_that_fails_before_a_claim_was_sent_is_reported_as_it_is(world: World) -> None:
    world.script("read", down)
    with pytest.raises(StoreUnavailable):
        world.comes("a")


@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["one token", "two tokens"])
def test_a_second_claim_that_certainly_failed_does_not_settle_the_first(
    world: World, pause: float
) -> None:
    world.script("claim", lost, down)
    world.script("read", lambda call: call(), world.slowly(pause))
    with pytest.raises(OutcomeUnknown):
        world.comes("a")


def test_a_claim_that_certainly_lost_is_not_open_any_more(world: World) -> None:
    world.script("claim", lambda call: None)
    world.script("read", lambda call: call(), down)
    with pytest.raises(StoreUnavailable):
        world.comes("a")


def test_a_claim_that_was_sent_at_an_older_version_is_not_open_any_more(world: World) -> None:
    def rival(call: Callable[[], Any]) -> Any:
        drive(leave(world.enters("b"), Outcome("parked", waiting=("p1",))), world)
        world.script("claim", down)
        return lost(call)

    world.script("claim", rival)
    with pytest.raises(StoreUnavailable):
        world.comes("a", world.answers("a", "p1"))


def test_a_claim_that_landed_is_found_though_a_take_over_of_it_was_withdrawn(
    world: World,
) -> None:
    serve = Policy(on_abandoned="serve")

    def taken_over(call: Callable[[], Any]) -> Any:
        call()
        world.clock += 31.0
        drive(leave(world.enters("b", policy=serve), None), world)
        raise OutcomeUnknown("no answer")

    world.script("claim", taken_over)
    passage = world.enters("a")
    assert passage.claim.holder == holder("a")
    assert passage.record == world.record
    assert passage.record.token > passage.claim.token
    assert drive(leave(passage, Outcome("finished")), world)


def test_a_bare_answer_that_takes_over_at_another_pause_may_ask_twice(world: World) -> None:
    world.enters("a")
    world.buried.add(holder("a"))
    world.waiting = ["p2"]
    world.script("claim", lost)
    passage = world.enters("b", policy=Policy(on_abandoned="serve"))
    assert passage.claim.pauses == ("p2",)
