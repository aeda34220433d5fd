"""What a gate costs on pydantic-graph and pydantic-ai, stock and gated in turns in one process.

A resume is measured whole: from the call that goes on to its end. What parks nothing is a run
that begins and ends, or a turn of an agent.
"""

from __future__ import annotations

import asyncio
import copy
import statistics
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.bare import Bare, bare
from benchmarks.turns import timed, turns


LIMITS: Final = {"resume": 1.5, "nothing parked": 0.4}
"""Milliseconds that the gate may add on SQLite, by what is done."""

NAMES: Final = ("stock", "gate", "bare")

Order = Callable[[Iterable[str]], Iterator[tuple[str, int]]]
"""`turns`, but for whose they are."""


def measure(url: str, count: int, block: int) -> dict[str, float]:
    """Median milliseconds of each call, with the claims at `url`: stock, gated, and stock
    between the bare statements of a gate, of which the durable one runs in a thread."""
    from remit_gates.stores import open_store

    store = open_store(url)
    store.setup()
    store.close()
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, bare(url) as statements:
        for found in (_graphs, _agents):
            own: dict[str, list[float]] = defaultdict(list)
            order = partial(turns, count=count, begin=own.clear, block=block)
            asyncio.run(found(url, order, own, Path(folder), statements))
            times |= own
    return {name: statistics.median(values) * 1000 for name, values in times.items()}


def report(kind: str, costs: dict[str, float]) -> None:
    """Print what `measure` found for the store `kind`."""
    print(f"\n{kind}: median milliseconds on pydantic     stock    gate    bare   added   least")
    for name in sorted({key.partition(": ")[2] for key in costs}):
        stock, gated, least = (costs[f"{who}: {name}"] for who in NAMES)
        limit = next((most for what, most in LIMITS.items() if name.endswith(what)), None)
        verdict = ""
        if kind == "sqlite" and limit is not None:
            verdict = f"  {'within' if gated - stock <= limit else 'OVER'} {limit:g}"
        cells = (stock, gated, least, gated - stock, least - stock)
        print(f"  {name:36}", *(f"{cell:7.2f}" for cell in cells), verdict)


async def _graphs(
    url: str, order: Order, times: dict[str, list[float]], folder: Path, statements: Bare
) -> None:
    """A run of two nodes, on the persistence in memory and on a file."""
    from pydantic_graph.persistence.file import FileStatePersistence
    from pydantic_graph.persistence.in_mem import FullStatePersistence

    from remit_gates.pydantic_graph import gate
    from tests.adapters.snapshots import Deps, Pay, State, go_on, graph

    deps = Deps(folder / "journal")

    async def park(persistence: Any) -> None:
        await graph.initialize(Pay(), persistence, state=State())

    for name, number in order(NAMES):
        made: dict[str, Any] = {
            "memory": FullStatePersistence(),
            "file": FileStatePersistence(folder / f"{name}-{number}.json"),
        }
        for kind, ungated in made.items():
            run = f"{kind}-{number}"
            wrap = partial(gate, store=url, run=run) if name == "gate" else _itself
            await park(wrap(ungated))
            # With the gate in it: it is made for each request.
            with timed(times, f"{name}: graph in {kind}, resume"):
                async with _around(statements, name, run):
                    await go_on(wrap(ungated), deps)
        wrap = partial(gate, store=url) if name == "gate" else _itself
        fresh: Any = FullStatePersistence()
        with timed(times, f"{name}: graph in memory, nothing parked"):
            async with _around(statements, name, f"fresh-{number}", durable=False):
                await graph.run(Pay(), state=State(), deps=deps, persistence=wrap(fresh))


async def _agents(
    url: str, order: Order, times: dict[str, list[float]], folder: Path, statements: Bare
) -> None:
    """A turn with a plain tool, and one that answers two calls."""
    from pydantic_ai.capabilities import AbstractCapability

    from remit_gates.pydantic_graph import ConsumeOnce
    from tests.adapters.agents import Till, agent_on, approvals

    class Idle(AbstractCapability[Any]):
        """What an agent pays for a capability that has something of its own in each run."""

        async def for_run(self, ctx: Any) -> Idle:
            return copy.copy(self)

    gates: dict[str, list[Any]] = {"stock": [], "gate": [ConsumeOnce(url)], "bare": [Idle()]}
    tills = {
        "resume": Till(folder / "till"),
        "nothing parked": Till(folder / "till", calls=("charge",)),
    }
    agents = {
        (name, what): agent_on(till, *gates[name]) for name in NAMES for what, till in tills.items()
    }
    for name, number in order(NAMES):
        with timed(times, f"{name}: agent, nothing parked"):
            await agents[name, "nothing parked"].run("go")
        asked = await agents["stock", "resume"].run("go")
        history = asked.all_messages()
        with timed(times, f"{name}: agent, resume"):
            async with _around(statements, name, f"agent-{number}"):
                await agents[name, "resume"].run(
                    message_history=history, deferred_tool_results=approvals(history)
                )
                if name == "bare":
                    # What the tools returned is kept before the model is asked.
                    statements.settle(f"agent-{number}")


def _itself(persistence: Any) -> Any:
    return persistence


@asynccontextmanager
async def _around(
    statements: Bare, name: str, run: str, *, durable: bool = True
) -> AsyncIterator[None]:
    """For `bare`, the statements of a gate before and after."""
    if name != "bare":
        yield
        return
    statements.read(run)
    if durable:
        await asyncio.to_thread(statements.claim, run)
    else:
        statements.begin(run)
    yield
    statements.settle(run)
