"""What event loops do to a run: cancel it, stand still, come and go. A claim outlives none
of it, and is lost to none of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import AlreadyConsumed, InProgress, Policy, StoreUnavailable, open_store
from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.langgraph import gate
from remit_gates.stores import open_async_store
from remit_gates.stores.sqlite import SqliteStore
from tests.journal import Journal
from tests.races.graph import build, config
from tests.races.savers import async_saver, path_of
from tests.unit.staged import Slow
from tests.waiting import PATIENCE, POLL, until


pytestmark = pytest.mark.asyncio

YES: Any = Command(resume="yes")
KEY = RunKey("langgraph", "", "r")


def expired(seen: Snapshot) -> Snapshot | None:
    """`seen`, where its claim's lease has run out."""
    return seen if seen.lease_left is not None and seen.lease_left <= 0 else None


class Bench:
    """A graph on a checkpointer of the test's event loop."""

    def __init__(self, folder: Path, url: str, store: Any, saver: Any) -> None:
        self._folder = folder
        self.url = url
        self.store = store
        self.saver = saver
        self.journal = Journal(folder)
        self.graph = build(saver, self.journal, awaited=True)

    async def parked(self, run: str) -> None:
        await self.graph.ainvoke({"run": run}, config(run))

    async def answer(self, run: str) -> Any:
        return await self.graph.ainvoke(YES, config(run))

    async def begins(self, run: str, step: str = "charge") -> asyncio.Task[Any]:
        """A winner that stands still in `step`."""
        self.journal.hold(run, step)
        running = asyncio.create_task(self.answer(run))
        await self.awaits(run, step)
        return running

    async def awaits(self, run: str, step: str) -> None:
        async with asyncio_timeout(PATIENCE):
            while not self.journal.counts(run)[step]:
                await asyncio.sleep(POLL)

    def record(self, run: str) -> Record:
        with closing(open_store(self.url)) as store:
            return store.read(RunKey("langgraph", "", run)).record


@asynccontextmanager
async def asyncio_timeout(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, which Python 3.10 does not have."""
    task = asyncio.current_task()
    assert task is not None
    handle = asyncio.get_running_loop().call_later(seconds, task.cancel)
    try:
        yield
    finally:
        handle.cancel()


@asynccontextmanager
async def bench(
    folder: Path, url: str, *, claims: str | None = None, **policy: Any
) -> AsyncIterator[Bench]:
    store = Slow(open_store(claims or url))

    def wrap(made: Any) -> Any:
        return gate(made, store=store, policy=Policy(**policy))

    async with async_saver(url, wrap) as saver:
        made = Bench(folder, url, store, saver)
        try:
            yield made
        finally:
            await store.close()


async def test_cancelled_while_its_claim_is_on_its_way_it_leaves_none(
    url: str, tmp_path: Path
) -> None:
    async with bench(tmp_path, url) as b:
        await b.parked("r")
        b.store.stop()
        running = asyncio.create_task(b.answer("r"))
        await asyncio.wait_for(b.store.asked.wait(), PATIENCE)
        running.cancel()
        b.store.through.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert b.record("r").claim is None
        assert b.journal.counts("r")["charge"] == 0
        assert (await b.answer("r"))["answer"] == "yes"


async def test_cancelled_in_a_node_its_answer_stays_and_the_run_goes_on_with_it(
    url: str, tmp_path: Path
) -> None:
    async with bench(tmp_path, url) as b:
        await b.parked("r")
        running = await b.begins("r")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        b.journal.let_go("r", "charge")
        assert b.record("r").claim is None
        with pytest.raises(AlreadyConsumed) as refused:
            await b.answer("r")
        assert refused.value.failed
        assert refused.value.outcome is not None
        assert refused.value.outcome.detail == "CancelledError"
        assert (await b.graph.ainvoke(None, config("r")))["answer"] == "yes"
        assert b.journal.counts("r")["notify done"] == 1


async def test_cancelled_while_it_leaves_it_is_written_down_all_the_same(
    url: str, tmp_path: Path
) -> None:
    async with bench(tmp_path, url) as b:
        await b.parked("r")
        running = await b.begins("r", "notify")
        b.store.stop()
        b.journal.let_go("r", "notify")
        await asyncio.wait_for(b.store.asked.wait(), PATIENCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert b.record("r").claim is not None
        b.store.through.set()
        async with asyncio_timeout(PATIENCE):
            while b.record("r").claim is not None:
                await asyncio.sleep(POLL)
        with pytest.raises(AlreadyConsumed) as refused:
            await b.answer("r")
        assert not refused.value.failed


async def test_a_stream_that_is_closed_early_is_a_run_that_failed(url: str, tmp_path: Path) -> None:
    async with bench(tmp_path, url) as b:
        await b.parked("r")
        stream = b.graph.astream(YES, config("r"), durability="sync")
        async for update in stream:
            assert "ask" in update
            with pytest.raises(InProgress):
                await b.answer("r")
            break
        await stream.aclose()
        assert b.record("r").claim is None
        with pytest.raises(AlreadyConsumed) as refused:
            await b.answer("r")
        assert refused.value.failed
        assert (await b.graph.ainvoke(None, config("r")))["answer"] == "yes"
        assert b.journal.counts("r")["charge done"] == 1


async def test_an_event_loop_that_stands_still_for_three_leases_keeps_its_claim(
    url: str, tmp_path: Path
) -> None:
    lease = 1.0
    # In a file of its own: the loop may stand still between a write of LangGraph's and its
    # commit, which is the next test.
    claims = url.replace("claims.db", "claims-only.db")
    async with bench(tmp_path, url, claims=claims, lease=lease, on_abandoned="serve") as b:
        await b.parked("r")
        running = await b.begins("r")
        with closing(open_store(claims)) as store:
            start = store.read(KEY).now
            least = lease
            # This is the event loop's own thread, so nothing of the loop moves meanwhile.
            while (seen := store.read(KEY)).now < start + 3 * lease:
                assert seen.lease_left is not None
                least = min(least, seen.lease_left)
                time.sleep(POLL)  # noqa: ASYNC251  to stand still is the point
        assert least > 0
        with pytest.raises(InProgress):
            await b.answer("r")
        b.journal.let_go("r", "charge")
        assert (await running)["answer"] == "yes"
        assert b.journal.counts("r")["charge"] == 1


async def test_a_loop_that_stands_still_in_a_commit_to_the_file_of_its_claim_takes_it_up_again(
    sqlite_url: str, tmp_path: Path
) -> None:
    """SQLite has one write lock a file. Who holds it keeps the lease from being renewed, and
    everybody else from taking the claim."""
    async with bench(tmp_path, sqlite_url, lease=0.2, on_abandoned="serve") as b:
        await b.parked("r")
        running = await b.begins("r")
        with closing(SqliteStore(path_of(sqlite_url), timeout=0.01)) as other:
            async with b.saver.lock:
                await b.saver.conn.execute("BEGIN IMMEDIATE")
                held = until(lambda: expired(other.read(KEY)), "the lease to run out")
                with pytest.raises(StoreUnavailable, match="locked"):
                    other.swap(KEY, held.version, held.record, lease=1.0)
                await b.saver.conn.rollback()
            while expired(seen := other.read(KEY)):
                await asyncio.sleep(POLL)
        assert seen.record.claim is not None
        assert seen.record.claim.token == held.record.claim.token
        b.journal.let_go("r", "charge")
        assert (await running)["answer"] == "yes"
        assert b.journal.counts("r")["charge"] == 1


async def test_parallel_answers_in_one_loop_to_many_runs(url: str, tmp_path: Path) -> None:
    """Nothing of one run leaks into another that shares its saver, its store and its loop."""
    async with bench(tmp_path, url) as b:
        runs = [f"r{number}" for number in range(12)]
        await asyncio.gather(*map(b.parked, runs))
        answers = [
            b.graph.ainvoke(Command(resume=run), config(run)) for run in runs for _ in range(2)
        ]
        done = await asyncio.gather(*answers, return_exceptions=True)
        for number, run in enumerate(runs):
            pair = done[2 * number : 2 * number + 2]
            served = [result for result in pair if isinstance(result, dict)]
            assert [values["answer"] for values in served] == [run]
            assert b.journal.counts(run)["charge"] == 1


async def test_a_store_serves_two_event_loops(url: str, tmp_path: Path) -> None:
    """The saver of LangGraph belongs to one loop. The gate's store does not."""
    store = open_async_store(url)
    await store.setup()
    journal = Journal(tmp_path)

    async def elsewhere(run: str, what: Any) -> Any:
        async with async_saver(url, lambda made: gate(made, store=store)) as saver:
            graph = build(saver, journal, awaited=True)
            try:
                return await graph.ainvoke(what, config(run))
            except (InProgress, AlreadyConsumed) as error:
                return error

    async with async_saver(url, lambda made: gate(made, store=store)) as saver:
        graph = build(saver, journal, awaited=True)
        await asyncio.to_thread(asyncio.run, elsewhere("r", {"run": "r"}))
        journal.hold("r", "charge")
        running = asyncio.create_task(graph.ainvoke(YES, config("r")))
        async with asyncio_timeout(PATIENCE):
            while not journal.counts("r")["charge"]:
                await asyncio.sleep(POLL)
        late = await asyncio.to_thread(asyncio.run, elsewhere("r", YES))
        assert isinstance(late, InProgress)
        journal.let_go("r", "charge")
        assert (await running)["answer"] == "yes"
        late = await asyncio.to_thread(asyncio.run, elsewhere("r", YES))
        assert isinstance(late, AlreadyConsumed)
    await store.close()
