"""Where deliveries of one answer meet: processes, threads on one saver, threads on a pool,
and tasks of one event loop.

A cell parks a run and has everybody answer it at once, or over some time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from langgraph.types import Command

from tests.journal import Journal
from tests.races.graph import build, config
from tests.races.savers import Wrap, async_saver, saver
from tests.races.workers import Team, Verdict, verdict_of
from tests.waiting import PATIENCE


RACERS = 8


class Cell(Protocol):
    """One kind of racers, with what they race for."""

    journal: Journal

    def park(self, run: str) -> None:
        """Start `run`, which stops at its question."""

    def race(self, run: str, spread: float) -> list[Verdict]:
        """Have everybody answer `run`, over `spread` seconds."""
        ...

    def waits(self, run: str) -> bool:
        """Whether `run` waits for an answer still."""
        ...


class Processes:
    """Each with a checkpointer of its own."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.journal = team.journal

    def park(self, run: str) -> None:
        assert self._team.workers[0].ask("park", run).served

    def race(self, run: str, spread: float) -> list[Verdict]:
        return self._team.race(run, spread)

    def waits(self, run: str) -> bool:
        waits: bool = self._team.workers[0].ask("waits", run)
        return waits


class Threads:
    """All on one graph."""

    def __init__(self, graph: Any, journal: Journal, racers: int = RACERS) -> None:
        self._graph = graph
        self._barrier = threading.Barrier(racers)
        self._racers = racers
        self.journal = journal

    def park(self, run: str) -> None:
        self._graph.invoke({"run": run}, config(run))

    def race(self, run: str, spread: float) -> list[Verdict]:
        def racer(number: int) -> Verdict:
            self._barrier.wait(PATIENCE)
            time.sleep(spread * number / (self._racers - 1))
            try:
                values = self._graph.invoke(Command(resume="yes"), config(run))
            except Exception as error:  # whatever it is, the test decides
                return verdict_of(error)
            return Verdict("served", values=values)

        with ThreadPoolExecutor(self._racers) as pool:
            return list(pool.map(racer, range(self._racers)))

    def waits(self, run: str) -> bool:
        return bool(self._graph.get_state(config(run)).interrupts)


class Tasks:
    """All on one graph, in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, graph: Any, journal: Journal) -> None:
        self._loop = loop
        self._graph = graph
        self.journal = journal

    def park(self, run: str) -> None:
        self._loop.run_until_complete(self._graph.ainvoke({"run": run}, config(run)))

    def race(self, run: str, spread: float) -> list[Verdict]:
        async def racer(number: int) -> Verdict:
            await asyncio.sleep(spread * number / (RACERS - 1))
            try:
                values = await self._graph.ainvoke(Command(resume="yes"), config(run))
            except Exception as error:  # whatever it is, the test decides
                return verdict_of(error)
            return Verdict("served", values=values)

        async def race() -> list[Verdict]:
            return list(await asyncio.gather(*map(racer, range(RACERS))))

        return self._loop.run_until_complete(race())

    def waits(self, run: str) -> bool:
        state = self._loop.run_until_complete(self._graph.aget_state(config(run)))
        return bool(state.interrupts)


CELLS = [
    ("sqlite", "processes"),
    ("sqlite", "threads"),
    ("sqlite", "tasks"),
    ("postgres", "processes"),
    ("postgres", "threads"),
    ("postgres", "pool"),
    ("postgres", "tasks"),
    ("redis", "processes"),
    ("redis", "threads"),
    ("redis", "tasks"),
]
"""Every database with every kind of racers that it can have."""


@contextmanager
def cell(
    kind: str, url: str, wrap: Wrap, *, folder: Path, team: Team | None = None, pace: float = 0.0
) -> Iterator[Cell]:
    """A cell of `kind`, which runs on the checkpointer that `wrap` makes of one at `url`."""
    if kind == "processes":
        if team is None:
            raise ValueError("processes are raced by a team")
        with saver(url, wrap):
            pass
        yield Processes(team)
    elif kind == "tasks":
        loop = asyncio.new_event_loop()
        closing = AsyncExitStack()
        journal = Journal(folder)
        try:
            made = loop.run_until_complete(closing.enter_async_context(async_saver(url, wrap)))
            yield Tasks(loop, build(made, journal, pace=pace, awaited=True), journal)
        finally:
            loop.run_until_complete(closing.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
    else:
        pooled = RACERS if kind == "pool" else 0
        with ExitStack() as stack:
            journal = Journal(folder)
            made = stack.enter_context(saver(url, wrap, pooled=pooled))
            yield Threads(build(made, journal, pace=pace), journal)
