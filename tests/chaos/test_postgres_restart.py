"""A Postgres server that crashes in the middle of a run, with the gate's store in it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import (
    AlreadyConsumed,
    InProgress,
    OutcomeUnknown,
    Policy,
    ResumeRefused,
    StoreUnavailable,
    open_store,
)
from remit_gates.langgraph import gate
from tests.jobs import jobs_of
from tests.journal import Journal
from tests.races.graph import build, config
from tests.races.savers import saver
from tests.servers import Postgres, postgres_server
from tests.waiting import PATIENCE, until


YES: Any = Command(resume="yes")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server for this module alone, since others would notice."""
    with postgres_server() as made:
        yield made


@pytest.fixture
def graph(server: Postgres, tmp_path: Path, sqlite_url: str) -> Iterator[Any]:
    """A graph whose checkpoints are in SQLite, and its gate's records in Postgres."""
    url = server.create()
    open_store(url).setup()
    with ExitStack() as stack:
        made = stack.enter_context(
            saver(sqlite_url, lambda it: gate(it, store=url, policy=Policy(lease=5.0)))
        )
        journal = Journal(tmp_path)
        graph = build(made, journal)
        graph.journal = journal
        graph.invoke({"run": "r"}, config("r"))
        yield graph
        # What could not be written while the server was down is written later, and there is
        # none later than this: nobody would ever be able to.
        until(lambda: not jobs_of(made._remit.keeper), "the end of each run to be written down")
        made._remit.store.close()
    server.drop(url)


def test_a_crash_while_it_runs_goes_unnoticed(graph: Any, server: Postgres) -> None:
    graph.journal.hold("r", "charge")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(graph.invoke, YES, config("r"))
        graph.journal.await_step("r", "charge")
        server.restart()
        with pytest.raises(InProgress):
            graph.invoke(YES, config("r"))
        graph.journal.let_go("r", "charge")
        assert running.result(PATIENCE)["answer"] == "yes"
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config("r"))
    assert graph.journal.counts("r")["charge"] == 1


def test_a_crash_after_a_run_lets_nobody_run_it_again(graph: Any, server: Postgres) -> None:
    server.restart()
    assert graph.invoke(YES, config("r"))["answer"] == "yes"
    server.restart()
    # The end of a run is not waited for to reach the disk. If the crash took it, the run is
    # held until its lease is over, and then abandoned; it is never served again by itself.
    with pytest.raises(ResumeRefused) as refused:
        graph.invoke(YES, config("r"))
    assert type(refused.value) in (AlreadyConsumed, InProgress)
    assert graph.journal.counts("r")["charge"] == 1


def test_a_delivery_during_a_crash_is_served_or_told(graph: Any, server: Postgres) -> None:
    def delivered() -> str:
        try:
            graph.invoke(YES, config("r"))
        except StoreUnavailable:
            return ""
        except (OutcomeUnknown, ResumeRefused) as error:
            return type(error).__name__
        return "served"

    with ThreadPoolExecutor(1) as pool:
        crash = pool.submit(server.restart)
        first = until(delivered, "a delivery to be answered in spite of a crash")
        crash.result(PATIENCE)
    # Unknown is only what was on its way when the server went, and then nothing ran. Where
    # it did not land, the next one is served.
    assert first in ("served", "OutcomeUnknown")
    last = until(delivered, "the next to be answered")
    assert last in ("AlreadyConsumed", "InProgress") or (first, last) == (
        "OutcomeUnknown",
        "served",
    )
    assert graph.journal.counts("r")["charge"] == [first, last].count("served") <= 1
