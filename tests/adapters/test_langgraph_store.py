"""When the store cannot answer, the gate stays shut, and the end of a run is not lost."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import Policy
from remit_gates._model import RunKey, Snapshot
from remit_gates._observe import Event, observed
from remit_gates.errors import AlreadyConsumed, StoreUnavailable
from remit_gates.stores.memory import MemoryStore
from tests.adapters.graphs import Journal, approval, asks, chain
from tests.adapters.workers import Team
from tests.waiting import PATIENCE


YES: Any = Command(resume="yes")

pytestmark = pytest.mark.kinds(
    "memory", "memory-async", "sqlite-async", "postgres", "redis", "foreign"
)


class Failing(MemoryStore):
    """A store that can be taken down."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False

    def read(self, run: RunKey) -> Snapshot:
        self._check()
        return super().read(run)

    def swap(self, *args: Any, **kwargs: Any) -> int | None:
        self._check()
        return super().swap(*args, **kwargs)

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("It is down.")


def test_the_gate_stays_shut(team: Team, journal: Journal) -> None:
    store = Failing()
    graph, config = team.worker(store=store).compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    before = team.pending(graph, config)
    store.down = True

    with pytest.raises(StoreUnavailable, match="Nothing ran"):
        graph.invoke(YES, config)
    assert journal.lines == ["ask"]
    assert team.pending(graph, config) == before
    # What needs no claim needs no store.
    assert graph.state(config).next == ("ask",)

    store.down = False
    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}


def test_it_may_be_told_to_serve(team: Team, journal: Journal) -> None:
    store = Failing()
    worker = team.worker(store=store, policy=Policy(on_store_error="serve"))
    graph, config = worker.compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    store.down = True
    events: list[Event] = []

    with observed(events.append):
        assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}
    assert [event.kind for event in events] == ["served_ungated"]


def test_the_end_of_a_run_is_written_down_later(team: Team, journal: Journal) -> None:
    store = Failing()
    written = threading.Event()

    def hook(event: Event) -> None:
        if event.kind == "unsettled":
            store.down = False
        if event.kind == "settled":
            written.set()

    def fall() -> None:
        store.down = True

    worker = team.worker(store=store, policy=Policy(lease=0.9))
    graph = worker.compile(chain(ask=asks(journal, "ask", "sure?", then=fall)))
    config = team.thread()
    graph.invoke({}, config)
    with observed(hook):
        assert graph.invoke(YES, config) == {"log": ["ask=yes"]}
        assert written.wait(PATIENCE)

    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config)
    assert refused.value.outcome is not None
    assert refused.value.outcome.state == "finished"
