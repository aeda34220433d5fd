"""Eight deliveries to one block, without any framework: one enters it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remit_gates import AsyncGate, Gate, Intent, ResumeRefused, open_store
from tests.races.cells import RACERS
from tests.races.workers import Team
from tests.waiting import PATIENCE


REPETITIONS = 5
SPREADS = pytest.mark.parametrize("spread", [0.0, 0.08], ids=["at once", "80 ms"])


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis", "valkey"])
def store_url(request: pytest.FixtureRequest) -> str:
    """A fresh store of any kind, with its table."""
    if request.param == "memory":
        return f"memory://{request.node.name}"
    url: str = request.getfixturevalue(f"{request.param}_url")
    open_store(url).setup()
    return url


def one_of_all(entered: Counter[str], refused: list[str]) -> None:
    """In each repetition one entered, and each other one was told why not."""
    assert entered == Counter({f"run-{number}": 1 for number in range(REPETITIONS)})
    assert len(refused) == REPETITIONS * (RACERS - 1)
    assert set(refused) <= {"InProgress", "AlreadyConsumed"}


@SPREADS
def test_threads(store_url: str, spread: float) -> None:
    gate = Gate(store_url)
    barrier = threading.Barrier(RACERS)
    entered: Counter[str] = Counter()
    refused: list[str] = []

    def racer(number: int) -> None:
        for repetition in range(REPETITIONS):
            barrier.wait(PATIENCE)
            time.sleep(spread * number / (RACERS - 1))
            try:
                with gate.passage(f"run-{repetition}", "p"):
                    entered[f"run-{repetition}"] += 1
            except ResumeRefused as error:
                refused.append(type(error).__name__)

    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(racer, range(RACERS)))
    one_of_all(entered, refused)


@SPREADS
def test_tasks(store_url: str, spread: float) -> None:
    gate = AsyncGate(store_url)
    entered: Counter[str] = Counter()
    refused: list[str] = []

    async def racer(number: int, run: str) -> None:
        await asyncio.sleep(spread * number / (RACERS - 1))
        try:
            async with gate.passage(run, "p"):
                entered[run] += 1
                await asyncio.sleep(0)
        except ResumeRefused as error:
            refused.append(type(error).__name__)

    async def race() -> None:
        for repetition in range(REPETITIONS):
            run = f"run-{repetition}"
            await asyncio.gather(*(racer(number, run) for number in range(RACERS)))
        await gate.store.close()

    asyncio.run(race())
    one_of_all(entered, refused)


@SPREADS
def test_processes(url: str, spread: float, racers: Team, tmp_path: Path) -> None:
    open_store(url).setup()
    for repetition in range(REPETITIONS):
        run = f"{tmp_path.name}-{repetition}"
        verdicts = racers.all(spread, "enter", url, run)
        assert racers.journal.counts(run) == Counter({"block": 1})
        kinds = Counter(verdict.kind for verdict in verdicts)
        assert kinds.pop("served") == 1
        assert set(kinds) <= {"InProgress", "AlreadyConsumed"}


def test_starts_are_one_at_a_time_too(store_url: str) -> None:
    """A claim without a pause: whoever comes while a start goes on is turned away, and
    the run can be started anew after it."""
    gate = Gate(store_url)
    inside = threading.Lock()
    barrier = threading.Barrier(RACERS)
    served: list[int] = []

    def racer(number: int) -> None:
        barrier.wait(PATIENCE)
        try:
            with gate.passage("run", intent=Intent.START):
                assert inside.acquire(blocking=False), "two starts at once"
                served.append(number)
                inside.release()
        except ResumeRefused:
            pass

    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(racer, range(RACERS)))
    assert served
