"""What a gate costs on pydantic-graph and pydantic-ai, stock and gated in turns in one process.

A resume is measured whole: from the call that goes on to its end. What parks nothing is a run
that begins and ends, or a turn of an agent.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final


LIMITS: Final = {"resume": 1.5, "nothing parked": 0.4}
"""Milliseconds that the gate may add on SQLite, by what is done."""


def measure(url: str, count: int) -> dict[str, float]:
    """Median milliseconds of each call, with the claims at `url`."""
    from remit_gates.stores import open_store

    store = open_store(url)
    store.setup()
    store.close()
    times: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for found in (_graphs, _agents):
            asyncio.run(found(url, count, times, Path(folder)))
    return {name: statistics.median(values) * 1000 for name, values in times.items()}


def report(kind: str, costs: dict[str, float]) -> None:
    """Print what `measure` found for the store `kind`."""
    print(f"\n{kind}: median milliseconds on pydantic     stock    gate   added")
    for name in sorted({key.partition(": ")[2] for key in costs}):
        stock, gated = costs[f"stock: {name}"], costs[f"gate: {name}"]
        limit = next((most for what, most in LIMITS.items() if name.endswith(what)), None)
        verdict = ""
        if kind == "sqlite" and limit is not None:
            verdict = f"  {'within' if gated - stock <= limit else 'OVER'} {limit:g}"
        print(f"  {name:36} {stock:7.2f} {gated:7.2f} {gated - stock:7.2f}{verdict}")


async def _graphs(url: str, count: int, times: dict[str, list[float]], folder: Path) -> None:
    """A run of two nodes, on the persistence in memory and on a file."""
    from pydantic_graph.persistence.file import FileStatePersistence
    from pydantic_graph.persistence.in_mem import FullStatePersistence

    from remit_gates.pydantic_graph import gate
    from tests.adapters.snapshots import Deps, Pay, State, go_on, graph

    deps = Deps(folder / "journal")

    async def park(persistence: Any) -> None:
        await graph.initialize(Pay(), persistence, state=State())

    for number in range(count + 5):
        for name in sorted(("stock", "gate"), reverse=bool(number % 2)):
            made: dict[str, Any] = {
                "memory": FullStatePersistence(),
                "file": FileStatePersistence(folder / f"{name}-{number}.json"),
            }
            for kind, bare in made.items():
                run = f"{kind}-{number}"
                persistence = gate(bare, store=url, run=run) if name == "gate" else bare
                await park(persistence)
                async with _timed(times, f"{name}: graph in {kind}, resume", number):
                    await go_on(persistence, deps)
            fresh: Any = FullStatePersistence()
            if name == "gate":
                fresh = gate(fresh, store=url)
            async with _timed(times, f"{name}: graph in memory, nothing parked", number):
                await graph.run(Pay(), state=State(), deps=deps, persistence=fresh)


async def _agents(url: str, count: int, times: dict[str, list[float]], folder: Path) -> None:
    """A turn with a plain tool, and one that answers two calls."""
    from remit_gates.pydantic_graph import ConsumeOnce
    from tests.adapters.agents import Till, agent_on, approvals

    gate: Any = ConsumeOnce(url)
    tills = {
        "resume": Till(folder / "till"),
        "nothing parked": Till(folder / "till", calls=("charge",)),
    }
    agents = {
        (name, what): agent_on(till, *([gate] if name == "gate" else []))
        for name in ("stock", "gate")
        for what, till in tills.items()
    }
    for number in range(count + 5):
        for name in sorted(("stock", "gate"), reverse=bool(number % 2)):
            async with _timed(times, f"{name}: agent, nothing parked", number):
                await agents[name, "nothing parked"].run("go")
            asked = await agents["stock", "resume"].run("go")
            history = asked.all_messages()
            async with _timed(times, f"{name}: agent, resume", number):
                await agents[name, "resume"].run(
                    message_history=history, deferred_tool_results=approvals(history)
                )


@asynccontextmanager
async def _timed(times: dict[str, list[float]], name: str, number: int) -> AsyncIterator[None]:
    start = time.perf_counter()
    yield
    if number >= 5:  # what came before was warming up
        times[name].append(time.perf_counter() - start)
