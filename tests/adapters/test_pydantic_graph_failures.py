"""After a failure or a death, the policy decides; and where it says to go on, exactly one of
eight finishes the run that pydantic-graph alone can never load again."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import pytest
from pydantic_graph.exceptions import GraphRuntimeError
from pydantic_graph.persistence.file import FileStatePersistence

from remit_gates import Policy
from remit_gates.errors import Abandoned, AlreadyConsumed, ClaimLost, InProgress, Superseded
from remit_gates.pydantic_graph import gate, release
from tests.adapters.rivals import Rivals
from tests.adapters.snapshots import (
    ROUTES,
    Pay,
    Place,
    State,
    go_on,
    graph,
    look_and_run,
    racer,
    split,
    stand_still,
    tasks,
    threads,
)
from tests.waiting import until


SERVE = Policy(on_abandoned="serve")
RETRY = Policy(on_failure="retry")

files = pytest.mark.parametrize("place", ["file"], indirect=True)
places = pytest.mark.parametrize("place", ["file", "sqlite"], indirect=True)


def killed(rivals: Rivals, place: Place, at: str) -> None:
    """Have a process resume the run and die, where it stands still."""
    process = rivals.start(stand_still, place, {}, at)
    until((place.folder / "standing").exists, "it stands still")
    with pytest.raises(InProgress):
        asyncio.run(go_on(place.gated(), place.deps))
    process.kill()
    process.join()


def finished_by_one(outcomes: list[Any]) -> None:
    served, refused = split(outcomes)
    assert served == ["shipped"], outcomes
    # Superseded: it looked while the run was in a later node already.
    known = {InProgress, AlreadyConsumed, Abandoned, Superseded}
    assert {type(error) for error in refused} <= known, outcomes


@places
@pytest.mark.parametrize("at", ["pay", "ship", "loaded"])
@pytest.mark.parametrize("route", ["iter_from_persistence", "load_all, its node"])
def test_a_killed_run_by_policy(rivals: Rivals, place: Place, at: str, route: str) -> None:
    killed(rivals, place, at)
    before = {"pay": ["pay"], "ship": ["pay", "ship"], "loaded": []}[at]
    assert place.deps.lines == before

    for call in ROUTES.values():
        with pytest.raises(Abandoned):
            asyncio.run(call(place.gated(), place.deps))
    assert place.deps.lines == before

    outcomes = rivals.race(8, racer, place, {"policy": SERVE}, route)
    finished_by_one(outcomes)
    again = ["ship"] if at == "ship" else ["pay", "ship"]
    assert place.deps.lines == before + again
    assert asyncio.run(place.gated().load_next()) is None


@files
def test_without_a_gate_a_killed_run_is_lost(rivals: Rivals, place: Place) -> None:
    """What it is about."""
    killed(rivals, place, "pay")

    with pytest.raises(GraphRuntimeError):
        asyncio.run(go_on(place.bare(), place.deps))


@places
def test_every_attempt_has_the_same_key(rivals: Rivals, place: Place) -> None:
    killed(rivals, place, "pay")
    outcomes = []
    for how in (tasks, threads):
        outcomes += how([partial(go_on, place.gated(policy=SERVE), place.deps) for _ in range(4)])
    finished_by_one(outcomes)

    history = asyncio.run(place.gated().load_all())
    keys = {line for snapshot in history for line in snapshot.state.log}
    asked = [snapshot.id for snapshot in history if isinstance(snapshot.node, Pay)]
    assert len(asked) == 2
    assert len(keys) == 1
    assert "None" not in next(iter(keys))


@files
def test_a_run_that_was_killed_while_it_held_the_lock(rivals: Rivals, place: Place) -> None:
    killed(rivals, place, "locked")
    lock = place.folder / "run.json.pydantic-graph-persistence-lock"
    assert lock.exists()
    with pytest.raises(Abandoned):
        asyncio.run(go_on(place.gated(), place.deps))

    finished_by_one(rivals.race(8, racer, place, {"policy": SERVE}, "iter_from_persistence"))
    assert place.deps.lines == ["pay", "ship"]


@files
def test_a_lock_file_that_nobody_knows_of(place: Place) -> None:
    """Only a person can say that nobody holds it. The claim is given back."""
    lock = place.folder / "run.json.pydantic-graph-persistence-lock"
    lock.write_bytes(b"somebody\n")
    with pytest.raises(TimeoutError):
        asyncio.run(go_on(place.gated(), place.deps))
    assert place.deps.lines == []

    lock.unlink()
    assert asyncio.run(go_on(place.gated(), place.deps)) == "shipped"


@places
@pytest.mark.parametrize("timeout", [False, True])
def test_a_node_that_is_cancelled(place: Place, timeout: bool) -> None:
    deps = place.deps
    deps.then["pay"] = lambda: asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.ensure_future(go_on(place.gated(), deps))
        while not deps.lines:
            await asyncio.sleep(0.005)
        if timeout:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(task, 0.001)
            return
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    with pytest.raises(AlreadyConsumed) as refused:
        asyncio.run(go_on(place.gated(policy=SERVE), place.deps))
    assert refused.value.failed
    assert "CancelledError" in str(refused.value)

    outcomes = tasks([partial(go_on, place.gated(policy=RETRY), place.deps) for _ in range(8)])
    finished_by_one(outcomes)
    assert place.deps.lines == ["pay", "pay", "ship"]


def raising() -> None:
    raise ConnectionError("the provider is down")


@places
@pytest.mark.parametrize("route", ROUTES)
def test_a_node_that_raises(rivals: Rivals, place: Place, route: str) -> None:
    deps = place.deps
    deps.then["pay"] = raising
    with pytest.raises(ConnectionError):
        asyncio.run(go_on(place.gated(), deps))

    for call in (*ROUTES.values(),):
        with pytest.raises(AlreadyConsumed) as refused:
            asyncio.run(call(place.gated(), place.deps))
        assert refused.value.failed
    assert place.deps.lines == ["pay"]

    outcomes = rivals.race(8, racer, place, {"policy": RETRY}, route)
    finished_by_one(outcomes)
    assert place.deps.lines == ["pay", "pay", "ship"]


@places
def test_a_failure_is_retried_by_the_same_delivery(place: Place) -> None:
    deps = place.deps
    deps.then["pay"] = raising
    with pytest.raises(ConnectionError):
        asyncio.run(go_on(place.gated(delivery="msg-1"), deps))

    with pytest.raises(AlreadyConsumed):
        asyncio.run(go_on(place.gated(delivery="msg-2"), place.deps))
    assert asyncio.run(go_on(place.gated(delivery="msg-1"), place.deps)) == "shipped"
    with pytest.raises(AlreadyConsumed):
        asyncio.run(go_on(place.gated(delivery="msg-1"), place.deps))


@places
def test_what_is_released_is_resumed(place: Place) -> None:
    deps = place.deps
    deps.then["ship"] = raising
    with pytest.raises(ConnectionError):
        asyncio.run(go_on(place.gated(), deps))

    persistence = place.gated()
    assert asyncio.run(release(persistence, actor="ann", reason="mended"))
    assert not asyncio.run(release(persistence))
    assert asyncio.run(go_on(persistence, place.deps)) == "shipped"
    assert place.deps.lines == ["pay", "ship", "ship"]


@places
def test_an_error_between_two_nodes_leaves_the_next_one_waiting(place: Place) -> None:
    async def interrupted() -> None:
        async with graph.iter_from_persistence(place.gated(), deps=place.deps) as run:
            await run.next()
            raise ConnectionError("the caller's own")

    with pytest.raises(ConnectionError):
        asyncio.run(interrupted())
    assert asyncio.run(go_on(place.gated(), place.deps)) == "shipped"
    assert place.deps.lines == ["pay", "ship"]


@places
def test_a_load_that_nobody_ran_is_given_back(place: Place) -> None:
    persistence = place.gated()
    assert asyncio.run(persistence.load_next()) is not None
    with pytest.raises(InProgress):
        asyncio.run(place.gated().load_next())

    del persistence
    found: list[Any] = []

    def loads() -> bool:
        try:
            found.append(asyncio.run(go_on(place.gated(), place.deps)))
        except InProgress:
            return False
        return True

    until(loads, "the claim comes back")
    assert found == ["shipped"]


@places
def test_a_blocked_loop_keeps_its_lease(place: Place) -> None:
    deps = place.deps
    deps.then["pay"] = lambda: time.sleep(1.5)
    policy = Policy(lease=0.5, on_abandoned="serve")

    def late() -> Any:
        until(lambda: deps.lines, "the node begins")
        end = time.monotonic() + 1.0
        seen = set()
        while time.monotonic() < end:
            try:
                asyncio.run(place.gated(policy=policy).load_next())
            except InProgress as error:
                seen.add(type(error))
        return seen

    [served, seen] = threads(
        [partial(go_on, place.gated(policy=policy), deps), partial(asyncio.to_thread, late)]
    )
    assert (served, seen) == ("shipped", {InProgress})


@places
@pytest.mark.parametrize("at", ["before", "in"])
def test_a_stale_winner_writes_nothing(place: Place, at: str, monkeypatch: Any) -> None:
    """It stood still, somebody took over, and it wakes up."""
    from remit_gates._heartbeat import HEARTBEAT

    monkeypatch.setattr(HEARTBEAT, "add", lambda job, delay: None)
    policy = Policy(lease=0.05, on_abandoned="serve")
    deps, stale = place.deps, place.gated(policy=policy)

    async def taken_over() -> None:
        await asyncio.sleep(0.1)
        assert await go_on(place.gated(policy=Policy(on_abandoned="serve")), place.deps)

    async def lost() -> None:
        async with graph.iter_from_persistence(stale, deps=deps) as run:
            if at == "before":
                await taken_over()
            else:
                deps.then["pay"] = taken_over
            await run.next()

    with pytest.raises(ClaimLost):
        asyncio.run(lost())
    assert place.deps.lines == (["pay"] if at == "in" else []) + ["pay", "ship"]
    history = asyncio.run(place.bare().load_all())
    assert [snapshot.kind for snapshot in history][-1] == "end"
    assert [getattr(snapshot, "status", "end") for snapshot in history].count("success") == 2


@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_what_was_begun_without_a_gate_is_told_from_what_waits(place: Place) -> None:
    deps = place.deps
    deps.then["pay"] = raising
    with pytest.raises(ConnectionError):
        asyncio.run(go_on(place.bare(), deps))

    with pytest.raises(AlreadyConsumed):
        asyncio.run(go_on(place.gated(), place.deps))
    assert asyncio.run(go_on(place.gated(policy=RETRY), place.deps)) == "shipped"


class Robbed(FileStatePersistence[State, str]):
    """Between its look and its load, somebody without a gate took what was on offer."""

    async def load_next(self) -> None:
        await super().load_next()


@files
def test_what_somebody_without_a_gate_took_meanwhile_is_not_run(place: Place) -> None:
    inner = Robbed(place.folder / "run.json")
    inner.set_graph_types(graph)
    persistence = gate(inner)

    with pytest.raises(Superseded):
        asyncio.run(persistence.load_next())
    # The claim was given back; the snapshot waits, loaded.
    assert asyncio.run(go_on(place.gated(), place.deps)) == "shipped"


def test_a_run_that_begins_and_dies(rivals: Rivals, tmp_path: Any) -> None:
    """A fresh run is claimed like any other."""
    place = Place("file", tmp_path)
    deps = place.deps
    deps.then["pay"] = raising
    with pytest.raises(ConnectionError):
        asyncio.run(graph.run(Pay(), state=State(), deps=deps, persistence=place.gated()))
    with pytest.raises(AlreadyConsumed):
        asyncio.run(go_on(place.gated(), place.deps))
    assert asyncio.run(look_and_run(place.gated(policy=RETRY), place.deps)) == "shipped"
    assert (tmp_path / "remit-gates.db").exists()
    assert gate(place.gated()) is not None
