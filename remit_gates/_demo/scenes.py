"""The three scenes. Nothing in them depends on luck or on the machine's speed: the slow
payment is held open until every caller has either been refused or fired it again.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from remit_gates._demo.figures import COLUMNS, Call, Figures, Result, Scene
from remit_gates._demo.journal import PATIENCE, POLL, Entry, entries, provider_answers
from remit_gates._demo.pool import Worker


REFUND: Final = "refund $10"
WIRE: Final = "wire $10,000"
EFFECTS: Final = ("charge", "notify")

HEAD_START: Final = 0.1
"""Seconds in which an order reaches every worker, so that they act on it together."""

LATE: Final = 0.2
"""Seconds that the late duplicate comes after the effect: a client's retry."""


def scenes(callers: int) -> tuple[Scene, ...]:
    """What is played, with `callers` of them in the race."""
    refund = {f"{effect} {REFUND}": 1 for effect in EFFECTS}
    return (
        Scene("race", f"{callers} callers answer one question together", callers, None, refund),
        Scene("late", "a duplicate comes 0.2 s into the next node", 2, 1, refund),
        Scene(
            "next",
            "the answer msg-1 comes again at the next question",
            2,
            1,
            {**refund, f"charge {WIRE}": 0, f"notify {WIRE}": 0},
            (f"{WIRE}?",),
        ),
    )


class Stage:
    """One scene in one column."""

    def __init__(self, workers: Sequence[Worker], folder: Path, column: str, run: str) -> None:
        self.run = run
        self._workers = workers
        self._folder = folder
        self._column = column

    def park(self, *todo: str) -> None:
        """Start the run, which then waits at its first question."""
        self._ask(1, "park", todo=todo)

    def answer(self, *callers: int, delivery: str | None = None) -> None:
        """Have `callers` answer yes, all at the same moment."""
        at = time.time() + (HEAD_START if callers[1:] else 0.0)
        for caller in callers:
            self._workers[caller - 1].order(
                "answer",
                column=self._column,
                run=self.run,
                caller=caller,
                at=at,
                delivery=delivery,
            )

    def await_verdicts(self, *callers: int) -> None:
        """Wait until each of `callers` has its reply or has reached the payment."""
        end = time.monotonic() + PATIENCE
        while True:
            paying = {entry.caller for entry in self._entries() if entry.node == "charge"}
            open_ = [c for c in callers if c not in paying and not self._workers[c - 1].replied]
            if not open_:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"{self._workers[open_[0] - 1]} is stuck in run {self.run}")
            time.sleep(POLL)

    def pay(self) -> None:
        """Let the payment provider answer."""
        provider_answers(self._folder, self.run)

    def calls(self, *callers: int) -> list[Call]:
        """What became of `callers`, when all of them have returned."""
        replies = {c: self._workers[c - 1].result(f"answer {self.run}") for c in callers}
        return [self._call(caller, reply) for caller, reply in replies.items()]

    def figures(self, calls: list[Call]) -> Figures:
        """What it all came to."""
        effects = Counter(
            f"{entry.node} {entry.request}" for entry in self._entries() if entry.node in EFFECTS
        )
        return Figures(dict(effects), tuple(calls), tuple(self._ask(1, "look")))

    def forget(self) -> None:
        """Delete the run where it is stored."""
        self._ask(1, "forget")

    def _ask(self, worker: int, do: str, **details: object) -> Any:
        return self._workers[worker - 1].ask(do, column=self._column, run=self.run, **details)

    def _entries(self) -> list[Entry]:
        return entries(self._folder, self.run)

    def _call(self, caller: int, reply: dict[str, Any]) -> Call:
        pid = reply.pop("served_pid", None)
        nodes = tuple(entry.node for entry in self._entries() if entry.caller == caller)
        served = next((worker.number for worker in self._workers if worker.pid == pid), None)
        return Call(caller, nodes=nodes, served=served, **reply)


def _race(stage: Stage, *everyone: int) -> Figures:
    stage.park(REFUND)
    stage.answer(*everyone)
    stage.await_verdicts(*everyone)
    stage.pay()
    return stage.figures(stage.calls(*everyone))


def _late(stage: Stage, first: int, again: int) -> Figures:
    stage.park(REFUND)
    stage.answer(first)
    stage.await_verdicts(first)
    time.sleep(LATE)
    stage.answer(again)
    stage.await_verdicts(again)
    stage.pay()
    return stage.figures(stage.calls(first, again))


def _next(stage: Stage, first: int, again: int) -> Figures:
    stage.pay()
    stage.park(REFUND, WIRE)
    stage.answer(first, delivery="msg-1")
    calls = stage.calls(first)
    stage.answer(again, delivery="msg-1")
    return stage.figures(calls + stage.calls(again))


_PLAYS: Final[dict[str, Callable[..., Figures]]] = {
    "race": _race,
    "late": _late,
    "next": _next,
}


def open_columns(workers: Sequence[Worker]) -> None:
    """Have every worker open both columns; the first one creates the tables alone."""
    for column in COLUMNS:
        gated = column == "gated"
        workers[0].ask("open", column=column, gated=gated, setup=True)
        for worker in workers[1:]:
            worker.order("open", column=column, gated=gated, setup=False)
        for worker in workers[1:]:
            worker.result("open")


def play(
    workers: Sequence[Worker], folder: Path, tell: Callable[[Scene, str, Figures], None]
) -> Iterator[Result]:
    """Play all scenes in both columns, and `tell` each as it ends."""
    mark = uuid.uuid4().hex[:8]
    for scene in scenes(len(workers)):
        columns = {}
        for column in COLUMNS:
            stage = Stage(workers, folder, column, f"demo-{mark}-{scene.name}-{column}")
            columns[column] = _PLAYS[scene.name](stage, *range(1, scene.callers + 1))
            tell(scene, column, columns[column])
            stage.forget()
        yield Result(scene, columns)
