"""Of several resumes of one run of pydantic-graph, one is served, by every route and on every
persistence, and no node runs for another."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic_graph import End
from pydantic_graph.exceptions import GraphRuntimeError

from remit_gates.errors import AlreadyConsumed, InProgress, Superseded
from tests.adapters.rivals import Rivals
from tests.adapters.snapshots import (
    KINDS,
    ROUTES,
    Pay,
    Place,
    State,
    go_on,
    graph,
    racer,
    split,
    tasks,
    threads,
)


ONCE = ["pay", "ship"]


def served_once(place: Place, outcomes: list[Any]) -> None:
    """One was served, and whoever else came was told so."""
    assert sorted(place.deps.lines) == ONCE, outcomes
    served, refused = split(outcomes)
    assert served == ["shipped"]
    # Superseded: it looked while the run was in a later node already.
    assert {type(error) for error in refused} <= {InProgress, AlreadyConsumed, Superseded}


def race(rivals: Rivals, place: Place, route: str, k: int, how: str) -> list[Any]:
    if how == "processes":
        return rivals.race(k, racer, place, {}, route)
    calls = [partial(ROUTES[route], place.gated(), place.deps) for _ in range(k)]
    return tasks(calls) if how == "tasks" else threads(calls)


@pytest.mark.parametrize("how", ["processes", "threads", "tasks"])
@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_one_of_k_is_served(rivals: Rivals, place: Place, k: int, how: str) -> None:
    outcomes = race(rivals, place, "iter_from_persistence", k, how)

    served_once(place, outcomes)


@pytest.mark.parametrize("how", ["processes", "threads", "tasks"])
@pytest.mark.parametrize("route", [name for name in ROUTES if name != "iter_from_persistence"])
@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_by_every_other_route(rivals: Rivals, place: Place, route: str, how: str) -> None:
    outcomes = race(rivals, place, route, 4, how)

    served_once(place, outcomes)


@pytest.mark.parametrize("how", [tasks, threads])
@pytest.mark.parametrize(
    ("kind", "route"), [*((kind, route) for kind in ("full", "simple") for route in ROUTES)][:-1]
)
def test_racers_on_one_object(kind: str, route: str, how: Any, tmp_path: Path) -> None:
    place = Place(kind, tmp_path)
    shared = place.gated()
    asyncio.run(graph.initialize(Pay(), shared, state=State()))

    outcomes = how([partial(ROUTES[route], shared, place.deps) for _ in range(8)])

    served_once(place, outcomes)


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_a_finished_run_stays_finished(place: Place) -> None:
    first, late = place.gated(), place.gated()
    assert asyncio.run(go_on(first, place.deps)) == "shipped"

    for persistence in (first, late):
        if place.kind == "blob" and persistence is late:
            # It is a copy from before: only the record knows.
            with pytest.raises(AlreadyConsumed):
                asyncio.run(go_on(persistence, place.deps))
        else:
            assert asyncio.run(persistence.load_next()) is None
            with pytest.raises(GraphRuntimeError):
                asyncio.run(go_on(persistence, place.deps))
    assert place.deps.lines == ONCE


@pytest.mark.parametrize("place", ["file", "sqlite"], indirect=True)
def test_a_node_that_was_looked_at_before_the_end_is_refused_after_it(place: Place) -> None:
    late = place.gated()

    async def both() -> None:
        seen = (await late.load_all())[-1]
        assert await go_on(place.gated(), place.deps) == "shipped"
        with pytest.raises(AlreadyConsumed):
            await graph.run(seen.node, state=seen.state, deps=place.deps, persistence=late)

    asyncio.run(both())
    assert place.deps.lines == ONCE


@pytest.mark.parametrize("place", ["file", "sqlite", "postgres"], indirect=True)
def test_a_live_run_keeps_its_next_node(place: Place) -> None:
    """Between two nodes, the next one is stored and looks like one that waits."""

    async def intruded() -> None:
        persistence, other = place.gated(), place.gated()
        async with graph.iter_from_persistence(persistence, deps=place.deps) as run:
            await run.next()
            assert (await other.load_all())[-1].status == "created"
            for route in ROUTES.values():
                with pytest.raises(InProgress):
                    await route(other, place.deps)
            await run.next()
            assert isinstance(run.next_node, End)

    asyncio.run(intruded())
    assert place.deps.lines == ONCE


@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_without_a_gate_the_live_run_is_robbed(place: Place) -> None:
    """The twin that must fail."""

    async def intruded() -> None:
        persistence, other = place.bare(), place.bare()
        async with graph.iter_from_persistence(persistence, deps=place.deps) as run:
            await run.next()
            assert await go_on(other, place.deps) == "shipped"
            with pytest.raises(GraphRuntimeError):
                await run.next()

    asyncio.run(intruded())


@pytest.mark.parametrize("place", ["blob"], indirect=True)
def test_without_a_gate_every_copy_pays(place: Place) -> None:
    """The twin that must fail."""
    outcomes = tasks([partial(go_on, place.bare(), place.deps) for _ in range(4)])

    assert outcomes == ["shipped"] * 4
    assert Counter(place.deps.lines) == {"pay": 4, "ship": 4}


@pytest.mark.parametrize("place", ["file"], indirect=True)
def test_a_look_while_somebody_writes(place: Place) -> None:
    """A file is written in place, and read without a lock."""
    persistence, file = place.gated(), place.folder / "run.json"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])

    async def mended() -> int:
        look = asyncio.ensure_future(persistence.load_all())
        while (tries := len(broken)) < 2:
            await asyncio.sleep(0)
        file.write_bytes(whole)
        assert len(await look) == 1
        return tries

    broken: list[int] = []
    inner = persistence.__wrapped__
    original = inner._load_sync

    def counted() -> Any:
        try:
            return original()
        except ValueError:
            broken.append(1)
            raise

    inner._load_sync = counted
    assert asyncio.run(mended()) >= 2
