"""What a run's effects returned is kept from then until the run has ended well."""

from __future__ import annotations

import pytest

from remit_gates._codec import decode, encode
from remit_gates._drive import drive
from remit_gates._model import Outcome, Phase
from remit_gates._passage import Passage, leave, note, renew
from remit_gates._policy import Policy
from tests.unit.worlds import RUN, World, holder, landed, lost


def noted(world: World, passage: Passage, receipt: str = "paid") -> bool:
    return drive(note(passage, receipt), world)


def test_noting_is_one_swap_and_extends_the_lease(world: World) -> None:
    passage = world.enters("a")
    world.clock += 3.0
    world.calls.clear()
    assert noted(world, passage)
    assert world.calls == ["swap"]
    assert passage.deadline == passage.entered + 3.0 + passage.claim.lease
    assert [entry.receipt for entry in world.record.consumptions] == ["paid"]
    assert decode(encode(world.record)) == world.record

    world.calls.clear()
    assert drive(leave(passage, Outcome("failed"), applied=True), world)
    assert world.calls == ["swap"], "it knows the version that noting left"
    (entry,) = world.record.consumptions
    assert (entry.phase, entry.receipt) == (Phase.FAILED, "paid")


@pytest.mark.parametrize("state", ["finished", "parked"])
def test_a_run_that_ended_well_keeps_none(world: World, state: str) -> None:
    passage = world.enters("a")
    assert noted(world, passage)
    assert drive(leave(passage, Outcome(state), applied=True), world)  # type: ignore[arg-type]
    assert [entry.receipt for entry in world.record.consumptions] == [None]


@pytest.mark.parametrize("step", [lost, landed])
def test_an_acknowledgement_that_is_lost_is_made_up_for(world: World, step: object) -> None:
    passage = world.enters("a")
    world.script("swap", step)  # type: ignore[arg-type]
    assert noted(world, passage)
    assert [entry.receipt for entry in world.record.consumptions] == ["paid"]
    assert passage.record == world.record
    assert drive(leave(passage, Outcome("failed"), applied=True), world)
    assert world.record.claim is None


def test_after_a_late_renewal_it_is_kept_at_the_new_version(world: World) -> None:
    passage = world.enters("a")
    world.clock += passage.claim.lease + 1
    assert drive(renew(passage), world)
    assert noted(world, passage)
    assert [entry.receipt for entry in world.record.consumptions] == ["paid"]


def test_whoever_was_replaced_notes_nothing(world: World) -> None:
    passage = world.enters("a")
    world.buried.add(holder("a"))
    other = world.enters("b", policy=Policy(on_abandoned="serve"))
    assert not noted(world, passage)
    assert [entry.receipt for entry in world.record.consumptions] == [None]
    assert drive(leave(other, Outcome("finished"), applied=True), world)
    del world.rows[RUN]
    assert not noted(world, other)


def test_the_next_attempt_begins_without_one(world: World) -> None:
    passage = world.enters("a")
    assert noted(world, passage)
    world.buried.add(holder("a"))
    world.enters("b", policy=Policy(on_abandoned="serve"))
    assert [entry.receipt for entry in world.record.consumptions] == [None]


def test_an_older_release_is_shut_out_from_it_and_from_nothing_else(world: World) -> None:
    passage = world.enters("a")
    assert '"format":1' in encode(world.record)
    assert noted(world, passage)
    assert '"format":2' in encode(world.record)
    assert drive(leave(passage, Outcome("finished"), applied=True), world)
    assert '"format":1' in encode(world.record)
