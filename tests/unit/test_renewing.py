"""Keeping a claim alive, and the fence that stops whoever lost it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._decide import release
from remit_gates._drive import drive
from remit_gates._model import Reason, Record
from remit_gates._passage import TRIES, fence, renew
from remit_gates.errors import ClaimLost, StoreUnavailable
from tests.unit.worlds import RUN, SERVE, World, down, holder, landed, left, lost


# Renewing.


def test_renewing_moves_the_deadline_and_not_the_version(world: World) -> None:
    passage = world.enters("a")
    version = passage.version
    world.clock += 10.0
    assert drive(renew(passage), world)
    assert passage.deadline == 90.0
    assert passage.version == version == world.rows[RUN].version
    assert world.rows[RUN].expires == 90.0


def test_the_new_deadline_counts_from_before_the_renewal_was_sent(world: World) -> None:
    passage = world.enters("a")

    def slow(call: Callable[[], Any]) -> Any:
        world.clock += 5.0
        return call()

    world.script("renew", slow)
    assert drive(renew(passage), world)
    assert passage.deadline == 80.0


def test_a_late_holder_wins_its_claim_back_by_a_swap(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    assert drive(renew(passage), world)
    assert world.rows[RUN].version != passage.version, "which only leaving needs to know"
    assert (passage.deadline, world.rows[RUN].expires) == (111.0, 111.0)
    assert world.record == passage.record
    assert left(world, passage)


def test_whoever_saw_the_lease_over_loses_to_a_holder_that_came_back(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0

    def revived(call: Callable[[], Any]) -> Any:
        assert drive(renew(passage), world)
        return call()

    world.script("claim", revived)
    assert world.refuses("b", policy=SERVE).verdict.reason is Reason.IN_PROGRESS
    assert world.record.claim == passage.claim


def test_a_holder_that_comes_back_loses_to_whoever_took_over(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0

    def replaced(call: Callable[[], Any]) -> Any:
        world.enters("b", policy=SERVE)
        return call()

    world.script("swap", replaced)
    before = (passage.version, passage.deadline)
    assert drive(renew(passage), world) is False
    assert (passage.version, passage.deadline) == before
    assert world.record.claim is not None
    assert world.record.claim.holder == holder("b")


def test_a_late_renewal_whose_acknowledgement_was_lost_is_sent_again(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    world.script("swap", landed, lost)
    assert drive(renew(passage), world)
    assert world.calls.count("swap") == 3
    assert (passage.deadline, world.record) == (111.0, passage.record)


def test_a_late_renewal_gives_up_after_so_many_tries(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    world.script("swap", *[lambda call: None] * TRIES)
    assert drive(renew(passage), world) is False
    assert passage.deadline == 80.0


def test_nothing_is_renewed_after_leaving(world: World) -> None:
    passage = world.enters("a")
    left(world, passage)
    assert drive(renew(passage), world) is False


# The fence.


def test_the_fence_asks_nobody_while_the_lease_lives(world: World) -> None:
    passage = world.enters("a")
    world.clock = passage.deadline - 0.001
    world.calls.clear()
    drive(fence(passage), world)
    assert world.calls == []


def test_the_fence_renews_as_soon_as_the_lease_may_be_over(world: World) -> None:
    passage = world.enters("a")
    world.clock = passage.deadline
    drive(fence(passage), world)
    assert passage.deadline == 110.0


def test_the_fence_stops_a_holder_that_was_replaced(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    world.enters("b", policy=SERVE)
    with pytest.raises(ClaimLost, match=r"order-17.*another delivery.*was not written"):
        drive(fence(passage), world)


def test_the_fence_stops_a_holder_whose_pause_was_released(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    after = release(world.record, -1.0, world.clock)
    assert isinstance(after, Record)
    world.swap(RUN, world.rows[RUN].version, after, None, True)
    with pytest.raises(ClaimLost, match="an operator has taken its place"):
        drive(fence(passage), world)


def test_the_fence_stays_shut_when_the_store_cannot_answer(world: World) -> None:
    passage = world.enters("a")
    world.clock += 31.0
    world.script("renew", down)
    with pytest.raises(ClaimLost, match=r"cannot renew it \(down\)") as caught:
        drive(fence(passage), world)
    assert isinstance(caught.value.__cause__, StoreUnavailable)
    assert str(passage.claim.token) in str(caught.value)
