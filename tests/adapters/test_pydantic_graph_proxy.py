"""A gated persistence is used as the persistence that it was made from."""

from __future__ import annotations

import asyncio
import copy
import pickle
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from pydantic_graph.graph import GraphRun
from pydantic_graph.persistence import BaseStatePersistence, NodeSnapshot
from pydantic_graph.persistence.file import FileStatePersistence
from pydantic_graph.persistence.in_mem import FullStatePersistence, SimpleStatePersistence

from examples.pydantic_graph_sql import SqlPersistence
from remit_gates import Policy, _supported, current_claim, open_store
from remit_gates.errors import AlreadyConsumed, InProgress, Superseded, UsageError
from remit_gates.pydantic_graph import _versions, gate, release
from tests.adapters.rivals import Rivals
from tests.adapters.snapshots import (
    Deps,
    Pay,
    Place,
    Ship,
    State,
    go_on,
    graph,
    load_and_run,
    look_and_run,
)


files = pytest.mark.parametrize("place", ["file"], indirect=True)


@files
def test_it_is_what_it_was_made_from(place: Place) -> None:
    bare = place.bare()
    gated = gate(bare)

    assert isinstance(gated, FileStatePersistence)
    assert isinstance(gated, BaseStatePersistence)
    assert gated.json_file == bare.json_file
    assert gate(gated) is gated
    with pytest.raises(UsageError, match=r"gated already.*policy="):
        gate(gated, policy=Policy(lease=5.0))
    assert "FileStatePersistence" in repr(gated)

    class Holder(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        persistence: FileStatePersistence[Any, Any]

    assert Holder(persistence=gated).persistence is gated


@pytest.mark.parametrize("place", ["file", "sqlite", "blob"], indirect=True)
def test_looking_claims_nothing(place: Place) -> None:
    gated = place.gated()
    store = open_store(place.store or f"sqlite:///{place.folder / 'remit-gates.db'}")
    store.setup()

    async def look() -> None:
        for _ in range(3):
            assert len(await gated.load_all()) == 1
        if place.kind == "blob":
            assert len(gated.history) == 1
            assert gated.dump_json() == gated.__wrapped__.dump_json()

    asyncio.run(look())
    assert [*store.scan()] == []
    store.close()
    assert asyncio.run(go_on(place.gated(), place.deps)) == "shipped"


@files
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda gated: pickle.loads(pickle.dumps(gated))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_is_gated_too(place: Place, duplicate: Any) -> None:
    # A type adapter cannot be pickled, gated or not, so the types are set after that.
    gated = gate(FileStatePersistence[Any, Any](place.folder / "run.json"), actor="ann")
    other = duplicate(gated)
    gated.set_graph_types(graph)
    other.set_graph_types(graph)

    assert asyncio.run(gated.load_next()) is not None
    with pytest.raises(InProgress) as refused:
        asyncio.run(other.load_next())
    assert refused.value.claim is not None
    assert refused.value.claim.actor == "ann"


@pytest.mark.parametrize("kind", ["full", "simple"])
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda gated: pickle.loads(pickle.dumps(gated))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_in_memory_is_gated_too(tmp_path: Path, kind: str, duplicate: Any) -> None:
    gated = Place(kind, tmp_path).gated()
    asyncio.run(graph.initialize(Pay(), gated, state=State()))
    if kind == "full":
        gated._snapshots_type_adapter = None
    other = duplicate(gated)

    assert asyncio.run(gated.load_next()) is not None
    with pytest.raises(InProgress):
        asyncio.run(other.load_next())


def unpickle(data: bytes) -> Any:
    def race() -> Any:
        return pickle.loads(data)

    return race


def test_memory_does_not_travel_to_another_process(rivals: Rivals, tmp_path: Path) -> None:
    gated = Place("simple", tmp_path).gated()

    [found] = rivals.race(1, unpickle, pickle.dumps(gated))

    assert isinstance(found, UsageError)
    assert "store=" in str(found)


def test_a_history_from_elsewhere_needs_a_store(tmp_path: Path) -> None:
    place = Place("full", tmp_path)
    bare = place.bare()
    asyncio.run(graph.initialize(Pay(), bare, state=State()))

    with pytest.raises(UsageError, match="store="):
        gate(bare)
    gated = place.gated()
    gated.load_json(bare.dump_json())
    with pytest.raises(UsageError, match="store="):
        asyncio.run(go_on(gated, place.deps))
    simple = SimpleStatePersistence[State, str](last_snapshot=bare.history[0])
    with pytest.raises(UsageError, match="run="):
        asyncio.run(gate(simple, store="memory://").load_next())
    with pytest.raises(UsageError, match="store="):
        gate(SqlPersistence("sqlite:///nowhere.db", "run"))
    with pytest.raises(UsageError, match="not int"):
        gate(1)


class Forgetful(SqlPersistence):
    """It stores no ids."""

    async def load_all(self) -> list[Any]:
        found = await super().load_all()
        for snapshot in found:
            if isinstance(snapshot, NodeSnapshot):
                vars(snapshot.node).pop("__snapshot_id", None)
        return [
            NodeSnapshot(state=snapshot.state, node=snapshot.node, status=snapshot.status)
            for snapshot in found
        ]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_persistence_that_drops_ids_is_refused(place: Place) -> None:
    inner = Forgetful(place.url, f"run-{place.folder.name}")
    inner.set_graph_types(graph)
    gated = gate(inner, store=place.store, run="run")

    for call in (go_on, load_and_run):
        with pytest.raises(UsageError, match="another id"):
            asyncio.run(call(gated, place.deps))
    assert place.deps.lines == []
    assert asyncio.run(place.bare().load_all())[-1].status == "created"


class LastOnly(SqlPersistence):
    """It keeps the newest snapshot of a run, and no other."""

    async def load_all(self) -> list[Any]:
        return (await super().load_all())[-1:]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_persistence_that_drops_the_first_snapshot_needs_a_name(place: Place) -> None:
    inner = LastOnly(place.url, f"run-{place.folder.name}")
    inner.set_graph_types(graph)

    with pytest.raises(UsageError, match="run="):
        asyncio.run(go_on(gate(inner, store=place.store), place.deps))
    assert place.deps.lines == ["pay"]
    named = gate(inner, store=place.store, run="run")
    assert asyncio.run(go_on(named, place.deps)) == "shipped"


@files
def test_a_late_resume_for_another_pause(place: Place) -> None:
    """The run parked again; the duplicate does not run what waits now."""

    async def parked_again() -> None:
        [first] = await place.bare().load_all()
        async with graph.iter_from_persistence(place.gated(pause=first.id), deps=place.deps) as run:
            await run.next()
        assert (await place.bare().load_all())[-1].status == "created"
        with pytest.raises(AlreadyConsumed):
            await go_on(place.gated(pause=first.id), place.deps)
        assert place.deps.lines == ["pay"]
        # By default nothing tells it from a legitimate one.
        assert await go_on(place.gated(), place.deps) == "shipped"

    asyncio.run(parked_again())


@files
def test_a_late_resume_by_delivery_id(place: Place) -> None:
    async def parked_again() -> None:
        async with graph.iter_from_persistence(place.gated(delivery="m"), deps=place.deps) as run:
            await run.next()
        for route in (go_on, load_and_run, look_and_run):
            with pytest.raises(AlreadyConsumed):
                await route(place.gated(delivery="m"), place.deps)

    asyncio.run(parked_again())


@files
def test_only_bound_resumes(place: Place) -> None:
    policy = Policy(answers="bound")
    with pytest.raises(UsageError):
        asyncio.run(go_on(place.gated(policy=policy), place.deps))
    [waits] = asyncio.run(place.bare().load_all())
    bound = place.gated(policy=policy, pause=waits.id)
    assert asyncio.run(go_on(bound, place.deps)) == "shipped"


def test_a_fresh_run_has_nothing_to_load(tmp_path: Path) -> None:
    for kind in ("file", "full", "simple"):
        place = Place(kind, tmp_path / kind)
        (tmp_path / kind).mkdir()
        persistence = place.gated()
        assert asyncio.run(persistence.load_next()) is None
        deps = Deps(tmp_path / kind / "journal")
        result = asyncio.run(graph.run(Pay(), state=State(), deps=deps, persistence=persistence))
        assert result.output == "shipped"
        assert isinstance(result.persistence, type(place.bare()))
        assert asyncio.run(persistence.load_next()) is None


def test_two_runs_that_begin_at_once(tmp_path: Path) -> None:
    place = Place("full", tmp_path)
    shared, deps = place.gated(), place.deps

    async def second() -> None:
        with pytest.raises(InProgress):
            await graph.run(Pay(), state=State(), deps=place.deps, persistence=shared)

    deps.then["pay"] = second
    asyncio.run(graph.run(Pay(), state=State(), deps=deps, persistence=shared))
    assert place.deps.lines == ["pay", "ship"]


@files
def test_a_run_that_starts_over_what_waits(place: Place) -> None:
    """New input: what waited is not served to anybody after it."""

    async def anew() -> None:
        persistence = place.gated()
        async with graph.iter(
            Pay(), state=State(), deps=place.deps, persistence=persistence
        ) as run:
            await run.next()
        assert await go_on(place.gated(), place.deps) == "shipped"
        assert await place.gated().load_next() is None

    asyncio.run(anew())
    assert place.deps.lines == ["pay", "ship"]


@files
def test_the_claim_is_found_in_a_node(place: Place) -> None:
    seen: list[Any] = []
    deps = place.deps
    deps.then["pay"] = lambda: seen.append(current_claim())
    asyncio.run(go_on(place.gated(actor="ann"), deps))

    assert seen[0].actor == "ann"
    assert current_claim() is None


@files
def test_what_is_not_gated_is_untouched(place: Place) -> None:
    gate(place.bare())
    bare = place.bare()

    async def plain() -> None:
        async with graph.iter_from_persistence(bare, deps=place.deps) as run:
            assert run.persistence is bare

    asyncio.run(plain())
    with pytest.raises(UsageError):
        asyncio.run(release(bare))


def test_a_persistence_of_a_later_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from remit_gates.errors import MissingExtra, UnsupportedVersion

    for found, error in (("2.68.0", UnsupportedVersion), ("0.7.9", UnsupportedVersion)):
        monkeypatch.setattr(_supported, "version", lambda name, found=found: found)
        with pytest.raises(error):
            gate(FullStatePersistence[Any, Any]())

    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_supported, "version", none)
    with pytest.raises(MissingExtra, match="remit-gates"):
        gate(FullStatePersistence[Any, Any]())
    with pytest.raises(MissingExtra, match="pydantic-ai"):
        _versions.ai()


@files
def test_a_load_in_a_task_of_its_own(place: Place) -> None:
    """Its claim finds the run by what was loaded."""

    async def apart() -> str:
        persistence = place.gated()
        snapshot = await asyncio.ensure_future(persistence.load_next())
        assert snapshot is not None
        result = await graph.run(
            Ship(), state=snapshot.state, deps=place.deps, persistence=persistence
        )
        return result.output

    assert asyncio.run(apart()) == "shipped"
    assert place.deps.lines == ["ship"]


@files
def test_a_run_that_is_made_by_hand(place: Place) -> None:
    """It goes past the hook, and holds its claim for one node at a time."""

    async def by_hand() -> None:
        persistence = place.gated()
        made = GraphRun(
            graph=graph,
            start_node=Pay(),
            persistence=persistence,
            state=State(),
            deps=place.deps,
            traceparent=None,
        )
        await made.next()
        assert await go_on(place.gated(), place.deps) == "shipped"
        # What it would run next has been run by somebody else.
        with pytest.raises((AlreadyConsumed, Superseded)):
            await made.next()

    asyncio.run(by_hand())
    assert place.deps.lines == ["pay", "ship"]
