"""A winner that is killed in its run is noticed, and what happens next is the policy's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from remit_gates import open_store
from remit_gates._model import RunKey
from remit_gates.langgraph import gate
from tests.processes import Worker
from tests.races.savers import saver
from tests.races.workers import Team
from tests.waiting import until


pytest.importorskip("langgraph.checkpoint.sqlite")

DURABILITIES = pytest.mark.parametrize("durability", ["sync", "async", "exit"])

SHORT = 1.0
"""A lease for those who must see one run out."""


@pytest.fixture
def run(request: pytest.FixtureRequest, url: str) -> str:
    """A name for the one run of a test, in a database with tables."""
    with saver(url, gate):
        pass
    return str(request.node.name)


Kill = Callable[..., Worker]


@pytest.fixture
def killed(crew: Team, url: str, run: str) -> Kill:
    """A winner that was killed while its run was in `charge`, after the others asked."""

    def kill(durability: str = "sync", **options: Any) -> Worker:
        crew.open(url, **options)
        winner, other = crew.workers[:2]
        assert winner.ask("park", run).served
        crew.journal.hold(run, "charge")
        winner.tell("answer", run, durability=durability)
        crew.journal.await_step(run, "charge")
        assert other.ask("answer", run).kind == "InProgress"
        winner.kill()
        crew.journal.let_go(run, "charge")
        fresh = crew.replace(winner)
        fresh.ask("open", url, **options)
        return other

    return kill


@DURABILITIES
def test_by_default_a_run_whose_holder_died_is_shut_until_somebody_decides(
    crew: Team, killed: Kill, run: str, durability: str
) -> None:
    # The lease is as long as it usually is: a dead process on this host needs none.
    other = killed(durability)
    for _ in range(2):
        shut = other.ask("answer", run)
        assert (shut.kind, shut.reason) == ("Abandoned", "abandoned")
        assert "graph.invoke(None, config)" in shut.said
        assert "release()" in shut.said
    went_on = other.ask("go_on", run)
    assert went_on.served
    if durability == "exit":
        # Such a run leaves no trace of its answer, so it asks the same question again, and
        # then the answer to that must be served.
        assert crew.journal.counts(run)["charge"] == 1
        again = other.ask("answer", run, "yes, again")
        assert again.values["answer"] == "yes, again"
    else:
        assert went_on.values["answer"] == "yes"
    steps = crew.journal.counts(run)
    assert (steps["draft"], steps["charge"], steps["charge done"]) == (1, 2, 1)
    assert steps["notify done"] == 1
    assert other.ask("answer", run).kind == "AlreadyConsumed"


@DURABILITIES
def test_if_the_policy_says_so_exactly_one_redelivery_takes_over(
    crew: Team, killed: Kill, run: str, url: str, durability: str
) -> None:
    killed(durability, on_abandoned="serve")
    dead = open_store(url).read(RunKey("langgraph", "", run)).record
    assert dead.claim is not None
    verdicts = crew.race(run, 0.0)
    kinds = Counter(verdict.kind for verdict in verdicts)
    assert kinds.pop("served") == 1, verdicts
    assert set(kinds) <= {"InProgress", "AlreadyConsumed"}, verdicts
    steps = crew.journal.counts(run)
    assert (steps["charge"], steps["charge done"], steps["notify done"]) == (2, 1, 1)
    record = open_store(url).read(RunKey("langgraph", "", run)).record
    assert record.claim is None
    assert record.served > dead.claim.token
    entry = record.consumption(dead.claim.pauses[0])
    assert entry is not None
    assert (entry.attempt, entry.phase.value) == (2, "settled")


def test_a_released_run_takes_another_answer(crew: Team, killed: Kill, run: str, url: str) -> None:
    other = killed("exit")
    assert other.ask("answer", run).kind == "Abandoned"
    with saver(url, gate) as gated:
        from remit_gates.langgraph import release

        assert release(gated, {"configurable": {"thread_id": run}}, actor="ann")
    assert other.ask("answer", run, "no").values["answer"] == "no"
    assert crew.journal.counts(run)["charge: no"] == 1


def charging_elsewhere(crew: Team, url: str, run: str, **options: Any) -> list[Worker]:
    """A winner on another host, which stands still in `charge`; and somebody else."""
    crew.open(url, lease=SHORT, **options)
    winner, other = crew.workers[:2]
    winner.ask("open", url, lease=SHORT, host="elsewhere")
    assert winner.ask("park", run).served
    crew.journal.hold(run, "charge")
    winner.tell("answer", run)
    crew.journal.await_step(run, "charge")
    return [winner, other]


def test_of_a_holder_on_another_host_only_the_lease_tells(crew: Team, url: str, run: str) -> None:
    winner, other = charging_elsewhere(crew, url, run)
    winner.kill()
    killed_at_most = other.ask("answer", run)
    assert killed_at_most.kind == "InProgress"
    assert 0 < (killed_at_most.retry_after or 0) <= SHORT
    crew.journal.let_go(run, "charge")
    until(lambda: other.ask("answer", run).kind == "Abandoned", "the lease of a dead holder to end")
    assert other.ask("go_on", run).served


def test_a_live_holder_on_another_host_keeps_its_run_beyond_its_lease(
    crew: Team, url: str, run: str
) -> None:
    winner, other = charging_elsewhere(crew, url, run, on_abandoned="serve")
    store = open_store(url)
    key = RunKey("langgraph", "", run)
    start = store.read(key).now
    while store.read(key).now < start + 3 * SHORT:
        assert other.ask("answer", run).kind == "InProgress"
    crew.journal.let_go(run, "charge")
    assert winner.result("answer").served
    assert crew.journal.counts(run)["charge"] == 1


def test_a_holder_that_stood_still_past_its_lease_cannot_write(
    crew: Team, url: str, run: str
) -> None:
    options = {"lease": SHORT, "on_abandoned": "serve"}
    crew.open(url, **options)
    stale, successor = crew.workers[:2]
    assert stale.ask("park", run).served
    crew.journal.hold(run, "charge")
    stale.tell("answer", run, durability="sync")
    crew.journal.await_step(run, "charge")
    stale.stop()
    try:
        # Let go only now: the stale holder must find itself replaced, not be quick enough.
        crew.journal.let_go(run, "charge")
        until(
            lambda: successor.ask("answer", run).served,
            "another to take over from a holder that stands still",
        )
    finally:
        stale.go()
    late = stale.result("answer")
    assert late.kind == "ClaimLost", late
    assert "taken its place" in late.said
    # It ran to the end of its step, which nobody can undo, and got no further.
    steps = crew.journal.counts(run)
    assert (steps["charge"], steps["notify"], steps["notify done"]) == (2, 1, 1)
    assert not successor.ask("waits", run)
    assert successor.ask("answer", run).kind == "AlreadyConsumed"
