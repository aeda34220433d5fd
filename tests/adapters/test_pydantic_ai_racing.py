"""Of several runs of an agent that answer the same calls, one is served, however it is driven,
and no tool runs and no model is asked for another."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter

from remit_gates.errors import AlreadyConsumed, InProgress
from remit_gates.pydantic_graph import ConsumeOnce
from tests.adapters.agents import (
    DRIVERS,
    Till,
    agent_on,
    approvals,
    outcome,
    park,
    racer,
    run,
    split,
)
from tests.adapters.rivals import Rivals
from tests.waiting import PATIENCE


ONCE = Counter({"pay 10": 1, "pay 20": 1, "model": 2})
"""What happens to a run whose two calls are approved: the model is asked before and after."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A store with its table."""
    from remit_gates.stores import open_store

    found: str = request.getfixturevalue(f"{request.param}_url")
    store = open_store(found)
    store.setup()
    store.close()
    return found


def served_once(till: Till, outcomes: list[Any]) -> None:
    assert Counter(till.lines) == ONCE, outcomes
    served, refused = split(outcomes)
    assert served == ["done"]
    assert {type(error) for error in refused} <= {InProgress, AlreadyConsumed}


async def raced(agents: list[Any], driver: str, history: list[Any]) -> list[Any]:
    given = {"message_history": history, "deferred_tool_results": approvals(history)}
    racing = (outcome(DRIVERS[driver](agent, **given)) for agent in agents)
    return [*await asyncio.gather(*racing)]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("k", [2, 8])
def test_tasks(url: str, driver: str, k: int, tmp_path: Path) -> None:
    till = Till(tmp_path / "journal")

    async def race() -> list[Any]:
        history = await park(till)
        shared = agent_on(till, ConsumeOnce(url))
        return await raced([shared] * k, driver, history)

    served_once(till, asyncio.run(race()))


@pytest.mark.parametrize("driver", DRIVERS)
def test_threads(url: str, driver: str, tmp_path: Path) -> None:
    till = Till(tmp_path / "journal")
    history = asyncio.run(park(till))
    barrier = threading.Barrier(4)

    def racing(_: int) -> Any:
        agent = agent_on(till, ConsumeOnce(url))
        barrier.wait(PATIENCE)
        return asyncio.run(raced([agent], driver, history))[0]

    with ThreadPoolExecutor(4) as pool:
        outcomes = [*pool.map(racing, range(4))]
    served_once(till, outcomes)


@pytest.fixture(scope="module")
def agent_rivals() -> Any:
    from tests.adapters.rivals import rivals

    with rivals("tests.adapters.agents") as made:
        yield made


@pytest.mark.parametrize(
    ("k", "driver"), [(2, "run"), (4, "run_stream"), (8, "run"), (4, "iter, bare"), (4, "run_sync")]
)
def test_processes(agent_rivals: Rivals, url: str, k: int, driver: str, tmp_path: Path) -> None:
    till = Till(tmp_path / "journal")
    history = ModelMessagesTypeAdapter.dump_json(asyncio.run(park(till)))

    served_once(till, agent_rivals.race(k, racer, url, tmp_path, history, driver))


def test_without_a_gate_everybody_pays(tmp_path: Path) -> None:
    """The twin that must fail."""
    till = Till(tmp_path / "journal")

    async def race() -> list[Any]:
        history = await park(till)
        return await raced([agent_on(till)] * 4, "run", history)

    assert asyncio.run(race()) == ["done"] * 4
    assert till.count("pay 10") == 4


@pytest.mark.parametrize("driver", DRIVERS)
def test_approve_against_deny(sqlite_url: str, driver: str, tmp_path: Path) -> None:
    """One decision: a denial consumes like an approval."""
    till = Till(tmp_path / "journal")

    async def race() -> list[Any]:
        history = await park(till)
        agent = agent_on(till, ConsumeOnce(sqlite_url))
        racing = (
            DRIVERS[driver](
                agent,
                message_history=history,
                deferred_tool_results=approvals(history, approved=number % 2 == 0),
            )
            for number in range(6)
        )
        return [*await asyncio.gather(*map(outcome, racing))]

    served, refused = split(asyncio.run(race()))
    assert (served, len(refused)) == (["done"], 5)
    assert till.count("model") == 2
    assert till.count("pay 10") == till.count("pay 20") <= 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_results_from_elsewhere(sqlite_url: str, driver: str, tmp_path: Path) -> None:
    till = Till(tmp_path / "journal", calls=("fetch", "fetch"))

    async def race() -> list[Any]:
        history = await park(till)
        agent = agent_on(till, ConsumeOnce(sqlite_url))
        results = DeferredToolResults(calls={"call-1": "a", "call-2": "b"})
        racing = (
            DRIVERS[driver](agent, message_history=history, deferred_tool_results=results)
            for _ in range(5)
        )
        return [*await asyncio.gather(*map(outcome, racing))]

    served, refused = split(asyncio.run(race()))
    assert (served, len(refused)) == (["done"], 4)
    assert till.count("model") == 2


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_crash_snapshot(sqlite_url: str, driver: str, tmp_path: Path) -> None:
    """A history that ends in plain calls which never ran, gone on with without a prompt."""
    till = Till(tmp_path / "journal", calls=("charge", "charge"))

    async def race() -> list[Any]:
        history = (await park(till))[:2]
        assert till.lines == ["model", "charge 10", "charge 20", "model"]
        till.journal.unlink()
        agent = agent_on(till, ConsumeOnce(sqlite_url))
        racing = (DRIVERS[driver](agent, message_history=history) for _ in range(6))
        return [*await asyncio.gather(*map(outcome, racing))]

    served, refused = split(asyncio.run(race()))
    assert (served, len(refused)) == (["done"], 5)
    assert Counter(till.lines) == {"charge 10": 1, "charge 20": 1, "model": 1}


def test_two_calls_are_never_split(sqlite_url: str, tmp_path: Path) -> None:
    """Several calls of one response are one pause, whoever comes between them."""
    till = Till(tmp_path / "journal")

    async def race() -> Any:
        history = await park(till)
        agent = agent_on(till, ConsumeOnce(sqlite_url))
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        other: list[Any] = []

        async def intrude() -> None:
            other.append(await outcome(run(agent, **given)))

        till.then["pay"] = intrude
        return await run(agent, **given), other

    served, others = asyncio.run(race())
    assert served == "done"
    assert {type(error) for error in others} == {InProgress}
    assert Counter(till.lines) == ONCE
