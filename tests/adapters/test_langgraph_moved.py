"""New input is not gated, so a run may go on to other work while an answer is unfinished.

A continue then goes on with the new work: under a key of its own, or a payment provider
would take the new payment for the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from remit_gates import Policy, current_claim
from remit_gates._claim import ActiveClaim
from remit_gates.errors import AlreadyConsumed, InProgress, ResumeRefused
from tests.adapters.graphs import Boom, Journal, State, asks, failing
from tests.adapters.racing import outcome
from tests.adapters.test_langgraph_claims import telling
from tests.adapters.ticketing import waiting
from tests.adapters.workers import Graph, Team, on
from tests.waiting import until


SOME = pytest.mark.kinds(
    *("memory", "memory-async", "sqlite", "sqlite-async", "postgres", "postgres-async"),
    *("redis", "redis-async", "foreign"),
)
YES: Any = Command(resume="yes")
SHORT = Policy(lease=0.05)

Stop = Callable[..., Callable[[], None]]


def dying(times: int = 1) -> Callable[[], None]:
    """A function in which, the first so many times, the run's process dies, as far as its
    record and its checkpoints can tell."""
    fail = failing(times)

    def die() -> None:
        try:
            fail()
        except Boom:
            claim = current_claim()
            assert claim is not None
            claim._left = True
            raise

    return die


stops = pytest.mark.parametrize("stop", [failing, dying])


class Scene:
    """A graph that asks and tells, or, on new input, pays: there it stops first."""

    def __init__(self, team: Team, journal: Journal, stop: Stop, place: str = "tell") -> None:
        self.told: list[ActiveClaim | None] = []
        self.paid: list[ActiveClaim | None] = []
        then = stop()
        builder: Any = StateGraph(State)
        builder.add_node(
            "ask", asks(journal, "ask", "sure?", then=then if place == "ask" else None)
        )
        builder.add_node("tell", telling(self.told, then if place == "tell" else None))
        builder.add_node("pay", telling(self.paid))
        builder.add_conditional_edges(START, lambda state: "pay" if state.get("log") else "ask")
        builder.add_edge("ask", "tell")
        builder.add_edge("tell", END)
        builder.add_edge("pay", END)
        self.graph: Graph = team.worker(policy=SHORT).compile(builder, interrupt_before=["pay"])
        self.config = team.thread()

    def stops_unfinished(self, **options: Any) -> None:
        """The run is answered, and its work does not end."""
        self.graph.invoke({}, self.config)
        given = on(self.config, remit_delivery="m")
        assert isinstance(outcome(lambda: self.graph.invoke(YES, given, **options)), Exception)

    def takes_new_input(self, **options: Any) -> None:
        self.graph.invoke({"log": ["new"]}, self.config, **options)
        assert not self.paid

    def goes_on(self, given: Any = None, **names: Any) -> Any:
        """What becomes of a delivery, once nobody holds the run any more."""
        found: list[Any] = []

        def free() -> bool:
            config = on(self.config, **names)
            found[:] = [outcome(lambda: self.graph.invoke(given, config))]
            return not isinstance(found[0], InProgress)

        until(free)
        return found[0]


@SOME
@stops
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_continue_after_new_input_has_a_key_of_its_own(
    team: Team, journal: Journal, stop: Stop, durability: Any
) -> None:
    scene = Scene(team, journal, stop)
    scene.stops_unfinished(durability="sync")
    scene.takes_new_input(durability=durability)
    scene.goes_on()

    (old,), (new,) = scene.told, scene.paid
    assert old is not None
    assert new is not None
    assert new.idempotency_key != old.idempotency_key
    assert (new.pauses, new.attempt) == ((), 1)


@SOME
@stops
@pytest.mark.parametrize("given", [YES, None], ids=["the answer", "a continue"])
def test_a_redelivery_after_new_input_is_refused(
    team: Team, journal: Journal, stop: Stop, given: Any
) -> None:
    scene = Scene(team, journal, stop)
    scene.stops_unfinished()
    scene.takes_new_input()

    assert isinstance(scene.goes_on(given, remit_delivery="m"), ResumeRefused)
    assert isinstance(scene.goes_on(YES), ResumeRefused)
    assert not scene.paid


@SOME
def test_what_was_released_before_new_input_is_not_gone_on_with(
    team: Team, journal: Journal
) -> None:
    scene = Scene(team, journal, failing)
    scene.stops_unfinished()
    assert team.release(scene.graph, scene.config)
    scene.takes_new_input()
    scene.goes_on()

    (new,) = scene.paid
    assert new is not None
    assert new.pauses == ()


@SOME
@stops
@pytest.mark.parametrize(("place", "edits"), [("ask", 0), ("tell", 0), ("tell", 1), ("tell", 2)])
def test_a_continue_without_new_input_goes_on_under_the_old_key(
    team: Team, journal: Journal, stop: Stop, place: str, edits: int
) -> None:
    """Also when somebody mended the state first, and when the next attempt stops as well."""
    keys: list[str] = []

    def twice() -> Callable[[], None]:
        then = stop(2)

        def note() -> None:
            claim = current_claim()
            assert claim is not None
            keys.append(claim.idempotency_key)
            then()

        return note

    scene = Scene(team, journal, twice, place)
    scene.stops_unfinished(durability="sync")
    for _ in range(edits):
        scene.graph.update(scene.config, {"log": ["mended"]})
    scene.goes_on()
    scene.goes_on()

    assert len(keys) == 3
    assert len(set(keys)) == 1


@SOME
@stops
def test_new_input_that_was_edited_is_new_input_still(
    team: Team, journal: Journal, stop: Stop
) -> None:
    scene = Scene(team, journal, stop)
    scene.stops_unfinished()
    scene.takes_new_input()
    scene.graph.update(scene.config, {"log": ["mended"]}, as_node="__start__")
    scene.goes_on()
    scene.goes_on()

    (old,), (new,) = scene.told, scene.paid
    assert old is not None
    assert new is not None
    assert new.idempotency_key != old.idempotency_key
    assert new.pauses == ()


@SOME
def test_after_new_input_the_old_ticket_is_spent_and_the_new_one_good(
    team: Team, journal: Journal
) -> None:
    scene = Scene(team, journal, failing)
    scene.graph.invoke({}, scene.config)
    (old,) = waiting(scene.graph, scene.config)
    with pytest.raises(Boom):
        scene.graph.invoke(old.command("yes"), old.config)
    scene.takes_new_input()

    late: list[Any] = [old.command("yes"), None]
    for given in late:
        with pytest.raises(AlreadyConsumed) as refused:
            scene.graph.invoke(given, old.config)
        assert refused.value.failed
    assert not scene.paid

    (new,) = waiting(scene.graph, scene.config)
    scene.graph.invoke(new.command(), new.config)
    (paid,), (told,) = scene.paid, scene.told
    assert paid is not None
    assert told is not None
    assert paid.pauses == (new.pause,)
    assert paid.idempotency_key != told.idempotency_key
