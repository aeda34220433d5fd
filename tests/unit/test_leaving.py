"""Letting go of a claim: it is settled or withdrawn, by its holder and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._decide import release
from remit_gates._drive import drive
from remit_gates._model import Answer, Delivery, Intent, Outcome, Phase, Reason, Record
from remit_gates._passage import TRIES, leave, renew
from remit_gates.errors import OutcomeUnknown, StoreUnavailable
from tests.unit.worlds import DONE, RUN, SERVE, World, down, holder, landed, left, lost


def test_leaving_is_one_swap(world: World) -> None:
    passage = world.enters("a")
    world.clock += 3.0
    world.calls.clear()
    assert left(world, passage)
    assert world.calls == ["swap"]
    assert world.rows[RUN].expires is None
    (entry,) = world.record.consumptions
    assert (entry.phase, entry.outcome, entry.applied) == (Phase.SETTLED, DONE, True)
    assert entry.until == passage.claim.since + 3.0


def test_an_answer_is_not_said_to_be_taken_in_unless_it_is_known(world: World) -> None:
    assert drive(leave(world.enters("a"), DONE), world)
    assert not world.record.consumptions[0].applied


def test_nobody_leaves_twice(world: World) -> None:
    passage = world.enters("a")
    assert left(world, passage)
    before = world.record
    assert left(world, passage), "its own settle is what it finds"
    assert left(world, passage, None) is False
    assert world.record == before


def test_withdrawing_is_one_swap_and_frees_the_pause(world: World) -> None:
    passage = world.enters("a")
    assert left(world, passage, None)
    assert world.rows[RUN].expires is None
    assert world.record == Record(token=passage.claim.token)
    assert world.enters("b").claim.attempt == 1


def test_withdrawing_a_take_over_leaves_the_dead_claim_as_dead_as_it_was(
    world: World,
) -> None:
    dead = world.enters("a").claim
    world.clock += 31.0
    assert left(world, world.enters("b", policy=SERVE), None)
    assert world.record.claim == dead
    assert world.rows[RUN].expires == world.clock
    assert world.refuses("c").verdict.reason is Reason.ABANDONED


def test_leaving_after_a_late_renewal_reads_the_version_first(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    assert drive(renew(passage), world)
    world.calls.clear()
    assert left(world, passage)
    assert world.calls == ["swap", "read", "swap"]


def test_a_holder_that_was_replaced_does_not_leave(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    second = world.enters("b", policy=SERVE)
    assert not left(world, passage)
    assert world.record == second.record


def test_a_holder_that_was_replaced_does_not_withdraw(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    second = world.enters("b", policy=SERVE)
    assert not left(world, passage, None)
    assert world.record == second.record


@pytest.mark.parametrize("outcome", [DONE, None])
def test_a_settle_whose_acknowledgement_was_lost_counts(
    world: World, outcome: Outcome | None
) -> None:
    passage = world.enters("a")
    world.script("swap", landed)
    assert left(world, passage, outcome)
    assert world.record.claim is None


def test_a_settle_that_never_landed_is_sent_again(world: World) -> None:
    passage = world.enters("a")
    world.script("swap", lost)
    assert left(world, passage)
    assert world.record.consumptions[0].phase is Phase.SETTLED


def test_a_settle_that_landed_counts_though_the_next_delivery_came_at_once(
    world: World,
) -> None:
    passage = world.enters("a")

    def overtaken(call: Callable[[], Any]) -> Any:
        call()
        world.waiting = ["p2"]
        world.enters("b")
        return landed(lambda: None)

    world.script("swap", overtaken)
    assert left(world, passage, Outcome("parked", waiting=("p2",)))


def test_a_settle_that_landed_without_a_pause_counts_though_the_next_delivery_came_at_once(
    world: World,
) -> None:
    passage = world.enters("a", world.continues("a"))

    def overtaken(call: Callable[[], Any]) -> Any:
        call()
        world.enters("b")
        return landed(lambda: None)

    world.script("swap", overtaken)
    assert left(world, passage, Outcome("parked"))


@pytest.mark.parametrize("state", ["finished", "parked", "failed"])
def test_a_settle_whose_flow_was_cut_off_is_found_by_the_next(world: World, state: Any) -> None:
    passage = world.enters("a")

    def interrupt(call: Callable[[], Any]) -> Any:
        call()
        raise KeyboardInterrupt

    world.script("swap", interrupt)
    with pytest.raises(KeyboardInterrupt):
        left(world, passage, Outcome(state))
    before = world.record
    assert left(world, passage, Outcome(state))
    assert world.record == before


def test_a_withdrawal_whose_flow_was_cut_off_is_found_by_the_next(world: World) -> None:
    passage = world.enters("a")
    assert left(world, passage, None)
    before = world.record
    assert left(world, passage, None)
    assert world.record == before


def released(world: World, pause: str | None = None) -> Callable[[Callable[[], Any]], Any]:
    """A script: the call is lost, and an operator releases the run in its place."""

    def step(call: Callable[[], Any]) -> Any:
        world.clock += 31.0
        after = release(world.record, -1.0, world.clock, pause=pause)
        assert isinstance(after, Record)
        assert world.swap(RUN, world.rows[RUN].version, after, None, True)
        return lost(call)

    return step


@pytest.mark.parametrize("outcome", [DONE, Outcome("failed"), None])
def test_a_release_is_not_taken_for_ones_own_settle(world: World, outcome: Outcome | None) -> None:
    passage = world.enters("a")
    world.script("swap", released(world))
    assert not left(world, passage, outcome)
    assert world.record.consumptions[0].reopened == "again"


def test_a_release_is_not_taken_for_ones_own_failure_though_the_next_delivery_came_at_once(
    world: World,
) -> None:
    passage = world.enters("a")

    def overtaken(call: Callable[[], Any]) -> Any:
        with pytest.raises(OutcomeUnknown):
            released(world)(call)
        world.enters("b")
        return lost(call)

    world.script("swap", overtaken)
    assert not left(world, passage, Outcome("failed"))


def test_a_release_of_a_claim_without_pauses_is_not_taken_for_ones_own_settle(
    world: World,
) -> None:
    passage = world.enters("a", world.continues("a"))
    world.script("swap", released(world))
    assert not left(world, passage)


def test_a_release_of_another_pause_is_not_taken_for_ones_own_settle(world: World) -> None:
    answers = (Answer("p1"), Answer("p2"))
    passage = world.enters("a", lambda w, r: Delivery(Intent.ANSWER, holder("a"), answers))
    world.script("swap", released(world, "p2"))
    assert not left(world, passage)


def test_a_settle_that_never_landed_does_not_count_when_another_took_over(
    world: World,
) -> None:
    passage = world.enters("a")

    def replaced(call: Callable[[], Any]) -> Any:
        world.clock += 31.0
        world.waiting = ["p2"]
        world.enters("b", policy=SERVE)
        return lost(call)

    world.script("swap", replaced)
    assert not left(world, passage)


def test_a_settle_that_never_landed_does_not_count_when_the_record_is_gone(
    world: World,
) -> None:
    passage = world.enters("a")

    def deleted(call: Callable[[], Any]) -> Any:
        world.rows.clear()
        return lost(call)

    world.script("swap", deleted)
    assert not left(world, passage)


def test_leaving_gives_up_after_so_many_tries(world: World) -> None:
    passage = world.enters("a")
    world.script("swap", *[lambda call: None] * TRIES)
    assert left(world, passage) is False
    assert world.calls.count("swap") == TRIES


def test_a_store_that_is_down_when_the_run_ends_is_reported(world: World) -> None:
    passage = world.enters("a")
    world.script("swap", down)
    with pytest.raises(StoreUnavailable):
        left(world, passage)
    assert left(world, passage)


def test_a_claim_without_pauses_is_held_and_left_like_any_other(world: World) -> None:
    passage = world.enters("a", lambda waiting, record: Delivery(Intent.START, holder("a")))
    world.script("swap", landed)
    assert left(world, passage)
    assert world.record == Record(token=passage.claim.token, served=passage.claim.token)
