"""Eight deliveries of one answer: one is served, and nothing runs for the other seven."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from remit_gates.langgraph import gate
from tests.races.cells import CELLS, RACERS, Cell, cell
from tests.races.workers import Team, Verdict


pytest.importorskip("langgraph.checkpoint.sqlite")

REPETITIONS = 3

ONCE = Counter(
    {
        "draft": 1,
        "ask": 2,  # once to ask, once to go on with the answer
        "charge": 1,
        "charge: yes": 1,
        "charge done": 1,
        "notify": 1,
        "notify: yes": 1,
        "notify done": 1,
    }
)


def unharmed(cell: Cell, run: str, verdicts: list[Verdict]) -> None:
    """Nothing of `run` happened twice, and everybody was told so."""
    assert cell.journal.counts(run) == ONCE, verdicts
    assert sum(verdict.served for verdict in verdicts) == 1, verdicts
    refused = [verdict for verdict in verdicts if not verdict.served]
    assert {verdict.kind for verdict in refused} <= {"InProgress", "AlreadyConsumed"}, verdicts
    assert len(refused) == RACERS - 1


@pytest.mark.parametrize(("spread", "pace"), [(0.0, 0.0), (0.08, 0.02)], ids=["at once", "80 ms"])
@pytest.mark.parametrize(("url", "kind"), CELLS, indirect=["url"])
def test_one_is_served(
    kind: str, url: str, spread: float, pace: float, tmp_path: Path, racers: Team
) -> None:
    with cell(kind, url, gate, folder=tmp_path, team=racers, pace=pace) as racing:
        if kind == "processes":
            racers.open(url, pace=pace)
        for repetition in range(REPETITIONS):
            run = f"{tmp_path.name}-{repetition}"
            racing.park(run)
            verdicts = racing.race(run, spread)
            unharmed(racing, run, verdicts)
            assert not racing.waits(run)


def test_those_who_come_while_it_runs_are_told_that_it_runs(
    url: str, tmp_path: Path, racers: Team
) -> None:
    """The window that a claim on the parked checkpoint alone leaves open: the winner is
    past its question already, and in the step after it."""
    run = tmp_path.name
    with cell("processes", url, gate, folder=tmp_path, team=racers):
        racers.open(url)
        winner, *late = racers.workers
        assert winner.ask("park", run).served
        racers.journal.hold(run, "charge")
        winner.tell("answer", run)
        racers.journal.await_step(run, "charge")
        verdicts = [worker.ask("answer", run) for worker in late]
        racers.journal.let_go(run, "charge")
        assert winner.result("answer").served
    assert {verdict.kind for verdict in verdicts} == {"InProgress"}
    assert len({verdict.token for verdict in verdicts}) == 1
    assert racers.journal.counts(run) == ONCE


def test_without_a_gate_it_is_as_bad_as_they_say(
    sqlite_url: str, tmp_path: Path, racers: Team
) -> None:
    """The twin that must fail: these races can see what they look for."""
    run = tmp_path.name
    with cell("processes", sqlite_url, lambda made: made, folder=tmp_path, team=racers) as racing:
        racers.open(sqlite_url, wrap="stock", pace=0.02)
        racing.park(run)
        verdicts = racing.race(run, 0.0)
    assert racing.journal.counts(run)["charge"] > 1
    assert sum(verdict.served for verdict in verdicts) > 1
