"""An interrupt while a delivery comes: the claim that it may have sent is taken back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from remit_gates._drive import drive
from remit_gates._model import Reason
from remit_gates._ops import Swap
from remit_gates._passage import enter, leave
from remit_gates._policy import Policy
from remit_gates.errors import OutcomeUnknown, RemitError
from tests.unit.worlds import RUN, World, down, holder, landed, lost


POLICY = Policy(on_conflict="wait", on_abandoned="serve", lease=5.0)


class Interrupting:
    """A world that is interrupted once, at one operation.

    Attributes:
        at: How many operations are performed before that one.
        done: Whether the world performs that one too, though nobody learns of it.
        names: The operations so far.
    """

    def __init__(self, world: World, at: int, *, done: bool) -> None:
        self.world = world
        self.at = at
        self.done = done
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def operation(*args: Any) -> Any:
            self.names.append(name)
            if len(self.names) - 1 == self.at:
                if self.done:
                    with suppress(RemitError):
                        getattr(self.world, name)(*args)
                raise KeyboardInterrupt
            return getattr(self.world, name)(*args)

        return operation


def alone(world: World) -> None:
    """Nothing happens beside the delivery."""


def unheard(world: World) -> None:
    """Its claim lands, and it does not hear of it."""
    world.script("claim", landed)


def unsent(world: World) -> None:
    """Its claim is lost on the way, and it does not hear of it."""
    world.script("claim", lost)


def twice(world: World) -> None:
    """Its first claim is lost on the way, its second lands, and it hears of neither."""
    world.script("claim", lost, landed)


def late(world: World, pause: float = 0.2) -> None:
    """Its claim lands when it has already looked whether it did, and sent another."""
    sent: list[Callable[[], Any]] = []

    def under_way(call: Callable[[], Any]) -> Any:
        sent.append(call)
        raise OutcomeUnknown("no answer")

    def arrives(call: Callable[[], Any]) -> Any:
        sent.pop()()
        return call()

    world.script("claim", under_way)
    world.script("read", lambda call: call(), world.slowly(pause))
    world.script("load", lambda call: call(), arrives)


def late_at_once(world: World) -> None:
    """Likewise, but the other has the same token."""
    late(world, 0.0)


def behind(world: World) -> None:
    """It waits for a holder that dies, and does not hear whether it took over."""
    world.enters("dead")
    world.later = [(50.1, lambda: world.buried.add(holder("dead")))]
    world.script("claim", landed)


def against(world: World) -> None:
    """Another takes the run while it does not hear whether its own claim landed."""

    def rival(call: Callable[[], Any]) -> Any:
        world.enters("rival")
        raise OutcomeUnknown("no answer")

    world.script("claim", rival)


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("happens", "strikes"),
    [
        (alone, {"read", "load", "now", "swap"}),
        (unheard, {"read", "load", "now", "swap"}),
        (unsent, {"read", "load", "now", "swap"}),
        (twice, {"read", "load", "now", "swap"}),
        (late, {"read", "load", "now", "swap"}),
        (late_at_once, {"read", "load", "now", "swap"}),
        (behind, {"read", "load", "now", "swap", "dead", "sleep"}),
        (against, {"read", "load", "now", "swap", "dead", "sleep"}),
    ],
)
def test_wherever_an_interrupt_strikes_nothing_is_left_behind(
    happens: Callable[[World], None], strikes: set[str], done: bool
) -> None:
    struck = set()
    for at in itertools.count():
        world = World()
        happens(world)
        port: Any = Interrupting(world, at, done=done)
        try:
            drive(enter(RUN, holder("a"), POLICY, world.answers("a")), port)
        except KeyboardInterrupt:
            struck.add(port.names[at])
        else:
            assert len(port.names) == at, "it struck at every operation that there is"
            break
        kept = world.record
        assert kept.claim is None or kept.claim.holder != holder("a"), port.names[: at + 1]
        assert all(entry.holder != holder("a") for entry in kept.consumptions)
    assert struck == strikes


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


def test_a_take_over_that_was_itself_withdrawn_stays_spent_when_the_claim_is_taken_back(
    world: World,
) -> None:
    spent = []

    def taken_over(call: Callable[[], Any]) -> Any:
        call()
        world.buried.add(holder("a"))
        other = world.enters("b", policy=Policy(on_abandoned="serve"))
        spent.append(other.claim.token)
        drive(leave(other, None), world)
        raise KeyboardInterrupt

    world.script("claim", taken_over)
    with pytest.raises(KeyboardInterrupt):
        world.comes("a")
    assert (world.record.claim, [world.record.token]) == (None, spent)


def test_a_store_that_fails_meanwhile_does_not_hide_the_interruption(world: World) -> None:
    def interrupt(call: Callable[[], Any]) -> Any:
        raise KeyboardInterrupt

    world.script("claim", interrupt)
    world.script("read", lambda call: call(), down)
    with pytest.raises(KeyboardInterrupt):
        world.comes("a")


def test_a_delivery_that_is_dropped_in_mid_claim_just_ends(world: World) -> None:
    flow = enter(RUN, holder("a"), Policy(), world.answers("a"))
    op = next(flow)
    while not isinstance(op, Swap):
        op = flow.send(op.on(world))
    flow.close()
    assert world.rows == {}
