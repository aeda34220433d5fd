"""A graph of pydantic-graph for tests, the persistences that it runs on, and racers on them.

`Pay` waits for an approval by not being run before it; then come `Ship` and the end. Each
node's effect is one line of a file, which a kill does not take back.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic_graph import BaseNode, End, GraphRunContext
from pydantic_graph.graph import Graph
from pydantic_graph.persistence.file import FileStatePersistence
from pydantic_graph.persistence.in_mem import FullStatePersistence, SimpleStatePersistence

from examples.pydantic_graph_sql import SqlPersistence
from remit_gates import ResumeRefused, current_claim
from remit_gates.pydantic_graph import gate
from remit_gates.stores import open_store
from tests.waiting import PATIENCE


T = TypeVar("T")

KINDS: Final = ("file", "sqlite", "postgres", "blob")
"""The persistences of which each racer has one of its own."""


@dataclass
class State:
    """What the nodes of a run did, as they know it."""

    log: list[str] = field(default_factory=list)


@dataclass
class Deps:
    """Where nodes write down what they do, and what they do there besides.

    Attributes:
        journal: The file.
        then: By node, what it does after its effect.
    """

    journal: Path
    then: dict[str, Callable[[], Any]] = field(default_factory=dict)

    async def effect(self, name: str) -> None:
        with self.journal.open("ab", buffering=0) as file:
            file.write(f"{name}\n".encode())
        done = self.then.get(name, int)()
        if asyncio.iscoroutine(done):
            await done

    @property
    def lines(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []


Context = GraphRunContext[State, Deps]


@dataclass
class Pay(BaseNode[State, Deps, str]):
    """The node that waits."""

    answer: str = "yes"

    async def run(self, ctx: Context) -> Ship:
        claim = current_claim()
        ctx.state.log.append(f"key {claim.idempotency_key if claim else None}")
        await ctx.deps.effect("pay")
        return Ship()


@dataclass
class Ship(BaseNode[State, Deps, str]):
    """The node after it."""

    async def run(self, ctx: Context) -> End[str]:
        await ctx.deps.effect("ship")
        return End("shipped")


graph: Graph[State, Deps, str] = Graph(nodes=[Pay, Ship], name="orders")


@dataclass(frozen=True)
class Place:
    """Where one run is kept, for whoever knows it.

    Attributes:
        kind: Which persistence.
        folder: Of the files.
        url: Of the SQL persistence.
        store: Of the claims.
        blob: The run as JSON.
    """

    kind: str
    folder: Path
    url: str = ""
    store: str | None = None
    blob: bytes = b""

    @property
    def deps(self) -> Deps:
        return Deps(self.folder / "journal")

    def bare(self) -> Any:
        """Another persistence of the run."""
        if self.kind == "file":
            made: Any = FileStatePersistence(self.folder / "run.json")
        elif self.kind == "sql":
            made = SqlPersistence(self.url, f"run-{self.folder.name}")
        elif self.kind == "simple":
            made = SimpleStatePersistence()
        else:
            made = FullStatePersistence()
        made.set_graph_types(graph)
        if self.blob:
            made.load_json(self.blob)
        return made

    def gated(self, **options: Any) -> Any:
        """The same, gated."""
        return gate(self.bare(), **{"store": self.store, **options})


def park(kind: str, folder: Path, url: str) -> Place:
    """Where a run waits at `Pay`; the SQL persistences are at `url`, with the claims."""
    if kind in ("sqlite", "postgres"):
        place = Place("sql", folder, url, store=url)
        asyncio.run(place.bare().setup())
        if kind == "postgres":
            store = open_store(url)
            store.setup()
            store.close()
    else:
        # The claims of a file are beside it.
        store_url = None if kind == "file" else f"sqlite:///{folder / 'claims.db'}"
        place = Place(kind, folder, store=store_url)
    persistence = place.bare()
    asyncio.run(graph.initialize(Pay(), persistence, state=State()))
    return replace(place, blob=persistence.dump_json()) if kind == "blob" else place


async def end_of(entering: Any) -> str:
    """Enter a run and take it to its end; its output."""
    async with entering as run:
        async for _ in run:
            pass
    output: str = run.result.output
    return output


async def go_on(persistence: Any, deps: Deps) -> str:
    """Resume from what is parked, as most do."""
    return await end_of(graph.iter_from_persistence(persistence, deps=deps))


async def load_and_answer(persistence: Any, deps: Deps) -> str | None:
    """Load what is parked, and run a node of one's own in its place."""
    snapshot = await persistence.load_next()
    if snapshot is None:
        return None
    return await end_of(
        graph.iter(Pay("yes"), state=snapshot.state, deps=deps, persistence=persistence)
    )


async def load_and_run(persistence: Any, deps: Deps) -> str | None:
    """Load what is parked, and run its node by itself."""
    snapshot = await persistence.load_next()
    if snapshot is None:
        return None
    result = await graph.run(
        snapshot.node, state=snapshot.state, deps=deps, persistence=persistence
    )
    return result.output


async def look_and_run(persistence: Any, deps: Deps) -> str | None:
    """Look at the history, and run the node of its newest snapshot."""
    newest = (await persistence.load_all())[-1]
    if isinstance(newest.node, End):
        return None
    result = await graph.run(newest.node, state=newest.state, deps=deps, persistence=persistence)
    return result.output


ROUTES: Final = {
    "iter_from_persistence": go_on,
    "load_next, another node": load_and_answer,
    "load_next, its node": load_and_run,
    "load_all, its node": look_and_run,
}


async def outcome(work: Coroutine[Any, Any, Any]) -> Any:
    """What `work` returns, or the exception that it raises."""
    try:
        return await work
    except Exception as error:
        return error


def tasks(calls: Sequence[Callable[[], Coroutine[Any, Any, Any]]]) -> list[Any]:
    """The outcomes of `calls` as tasks of one loop."""

    async def gathered() -> list[Any]:
        return [*await asyncio.gather(*(outcome(call()) for call in calls))]

    return asyncio.run(gathered())


def threads(calls: Sequence[Callable[[], Coroutine[Any, Any, Any]]]) -> list[Any]:
    """The outcomes of `calls`, each in a thread and a loop of its own."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        barrier.wait(PATIENCE)
        return asyncio.run(outcome(call()))

    with ThreadPoolExecutor(len(calls)) as pool:
        return [*pool.map(run, calls)]


def split(outcomes: list[Any]) -> tuple[list[Any], list[Any]]:
    """What was served, and what was refused; anything else is a fault, but for what a run is
    like to whoever comes when it is over: there is nothing to load."""
    outcomes = [
        found
        for found in outcomes
        if found not in (None, "None") and "Unable to restore" not in str(found)
    ]
    refused = [found for found in outcomes if isinstance(found, ResumeRefused)]
    served = [found for found in outcomes if isinstance(found, str)]
    assert len(served) + len(refused) == len(outcomes), outcomes
    return served, refused


def racer(place: Place, options: dict[str, Any], route: str) -> Callable[[], Any]:
    """A racer in a process of its own."""
    persistence = place.gated(**options)

    def race() -> Any:
        found = asyncio.run(outcome(ROUTES[route](persistence, place.deps)))
        return found if isinstance(found, (str, ResumeRefused)) else repr(found)

    return race


def stand_still(place: Place, options: dict[str, Any], at: str) -> None:
    """Resume in a process of its own, and stand still for ever: in a node, or before it."""

    def still() -> None:
        (place.folder / "standing").touch()
        time.sleep(PATIENCE)
        os._exit(1)

    async def run() -> None:
        persistence = place.gated(**options)
        deps = place.deps
        if at == "locked":
            # It stores under its lock.
            under_lock: Any = FileStatePersistence
            under_lock._save = lambda self, snapshots: still()
        if at == "loaded":
            assert await persistence.load_next() is not None
            still()
        deps.then[at] = still
        await go_on(persistence, deps)

    asyncio.run(run())


def begin_and_stand_still(place: Place, at: str) -> None:
    """Begin the run in a process of its own, and stand still in a node for ever."""

    def still() -> None:
        (place.folder / "standing").touch()
        time.sleep(PATIENCE)
        os._exit(1)

    deps = place.deps
    deps.then[at] = still
    asyncio.run(graph.run(Pay(), state=State(), deps=deps, persistence=place.gated()))
