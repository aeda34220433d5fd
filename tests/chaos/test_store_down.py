"""A store that does not answer: the gate stays shut, and what runs is not disturbed for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from remit_gates import (
    AlreadyConsumed,
    ClaimLost,
    Event,
    InProgress,
    Policy,
    StoreUnavailable,
    observed,
    open_store,
)
from remit_gates._model import RunKey
from remit_gates.langgraph import gate
from tests.journal import Journal
from tests.races.graph import build, config
from tests.unit.staged import Watched
from tests.waiting import PATIENCE, until


LEASE = 0.6


class Bench:
    """A graph on a checkpointer in memory, whose records are in a store that can fail."""

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        store = open_store(url)
        store.setup()
        stack.callback(store.close)
        self.store = Watched(store)
        self.journal = Journal(folder)
        self._saver = InMemorySaver()
        self._pool = stack.enter_context(ThreadPoolExecutor(2))
        self.events: list[Event] = []
        stack.enter_context(observed(self.events.append))
        self.graph = self.gated()

    def gated(self, **policy: Any) -> Any:
        """The graph, behind a gate with this policy."""
        saver = gate(self._saver, store=self.store, policy=Policy(**policy))
        return build(saver, self.journal)

    def parked(self, run: str) -> None:
        self.graph.invoke({"run": run}, config(run))
        assert self.graph.get_state(config(run)).interrupts

    def answer(self, run: str, graph: Any = None) -> Any:
        return (graph or self.graph).invoke(Command(resume="yes"), config(run))

    def begins(self, run: str, graph: Any = None, durability: str = "sync") -> Future[Any]:
        """A winner that stands still in `charge`."""
        self.journal.hold(run, "charge")
        running = self._pool.submit(
            (graph or self.graph).invoke,
            Command(resume="yes"),
            config(run),
            durability=durability,
        )
        self.journal.await_step(run, "charge")
        return running

    def kinds(self, *among: str) -> list[str]:
        return [event.kind for event in self.events if event.kind in among]

    def lease_left(self, run: str) -> float:
        left = self.store.read(RunKey("langgraph", "", run)).lease_left
        return -1.0 if left is None else left


@pytest.fixture
def bench(tmp_path: Path, url: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, url, stack)


def test_down_before_the_claim_nothing_runs(bench: Bench) -> None:
    bench.parked("r")
    before = bench.journal.steps("r")
    with bench.store.down(), pytest.raises(StoreUnavailable, match="Nothing ran") as caught:
        bench.answer("r")
    assert "Deliver again" in str(caught.value)
    assert caught.value.http_status == 503
    assert bench.journal.steps("r") == before
    # Nothing was lost: the same answer is served when the store is back.
    assert bench.answer("r")["answer"] == "yes"


def test_down_before_the_claim_it_serves_if_it_must(bench: Bench) -> None:
    graph = bench.gated(on_store_error="serve")
    bench.parked("r")
    with bench.store.down():
        assert bench.answer("r", graph)["answer"] == "yes"
    assert bench.kinds("served_ungated", "granted") == ["served_ungated"]
    assert bench.journal.counts("r")["notify done"] == 1


def test_down_while_it_runs_the_holder_goes_on_as_long_as_its_lease_lives(bench: Bench) -> None:
    bench.parked("r")
    running = bench.begins("r")
    with bench.store.down("renew", "read"):
        bench.journal.let_go("r", "charge")
        assert running.result(PATIENCE)["answer"] == "yes"
    with pytest.raises(AlreadyConsumed):
        bench.answer("r")


def test_down_for_longer_than_the_lease_the_next_write_is_refused(bench: Bench) -> None:
    graph = bench.gated(lease=LEASE)
    bench.parked("r")
    running = bench.begins("r", graph)
    with bench.store.down():
        until(lambda: len(bench.kinds("renewal_failed")) > 10, "the lease to be past its end")
        bench.journal.let_go("r", "charge")
        with pytest.raises(ClaimLost, match="cannot renew it") as caught:
            running.result(PATIENCE)
        assert "was not written" in str(caught.value)
    assert bench.journal.counts("r")["notify"] == 0
    # The end of the run is written down as soon as the store is back, and not as a success.
    until(lambda: bench.kinds("failed"), "the heartbeat to settle what was left")
    with pytest.raises(AlreadyConsumed) as refused:
        bench.answer("r")
    assert refused.value.failed
    assert bench.graph.invoke(None, config("r"))["answer"] == "yes"
    assert bench.journal.counts("r")["notify done"] == 1


def test_down_at_the_end_the_outcome_is_returned_and_settled_later(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    graph = bench.gated(lease=LEASE)
    bench.parked("r")
    running = bench.begins("r", graph)
    with bench.store.down("swap"):
        bench.journal.let_go("r", "charge")
        assert running.result(PATIENCE)["answer"] == "yes"
        assert bench.kinds("unsettled") == ["unsettled"]
        assert [record.levelno for record in caplog.records if "unsettled" in record.message] == [
            logging.ERROR
        ]
        with pytest.raises(InProgress):
            bench.answer("r")
    until(lambda: bench.kinds("settled"), "the heartbeat to settle the run")
    with pytest.raises(AlreadyConsumed):
        bench.answer("r")
    # The run is as usable as any other that has ended.
    bench.parked("r")
    assert bench.answer("r")["answer"] == "yes"
