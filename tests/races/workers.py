"""Worker processes with a gated LangGraph, which live through a whole session.

Racers are told first and released together, by a barrier that all of them share.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.types import Command

from remit_gates import Gate, RemitError, ResumeRefused, _liveness
from tests.journal import Journal
from tests.processes import Worker, serve
from tests.races.graph import build, config
from tests.races.savers import saver, wrapper
from tests.waiting import PATIENCE


_HERE = _liveness._host

GRACE = 2.0
"""Seconds that all of them may take to end."""


@dataclass(frozen=True)
class Verdict:
    """What came of one call.

    Attributes:
        kind: `served`, or the name of the error.
        said: The message of the error.
        reason: Why it was refused.
        token: Token of the claim in the way.
        retry_after: Of the refusal.
        values: The state that a served call returned.
    """

    kind: str
    said: str = ""
    reason: str = ""
    token: int | None = None
    retry_after: float | None = None
    values: Any = None

    @property
    def served(self) -> bool:
        return self.kind == "served"


def verdict_of(error: BaseException) -> Verdict:
    """The verdict of a call that raised."""
    if isinstance(error, ResumeRefused):
        held = error.claim or error.consumption
        return Verdict(
            type(error).__name__,
            str(error),
            error.reason.value,
            None if held is None else held.token,
            error.retry_after,
        )
    if isinstance(error, RemitError):
        return Verdict(type(error).__name__, str(error))
    return Verdict(type(error).__name__, "".join(traceback.format_exception(error))[-2000:])


class Doing:
    """The far end: what a worker does when it is told to."""

    def __init__(self, folder: Path, barrier: Any) -> None:
        self._folder = folder
        self._barrier = barrier
        self._stack = ExitStack()
        self._journal = Journal(folder)
        self._graph: Any = None

    def open(
        self,
        url: str,
        *,
        wrap: str = "gate",
        pace: float = 0.0,
        host: str | None = None,
        **policy: Any,
    ) -> None:
        """Open a checkpointer and compile the graph. `host` makes this process one of
        another machine, of which nobody here can tell whether it is alive."""
        self._stack.close()
        _liveness._host = _HERE if host is None else cache(lambda: f"{host}#elsewhere")

        made = self._stack.enter_context(saver(url, wrapper(wrap, **policy), setup=False))
        self._graph = build(made, self._journal, pace=pace)

    def park(self, run: str) -> Verdict:
        """Start `run`, which stops at its question."""
        return self._call({"run": run}, run)

    def answer(self, run: str, answer: str = "yes", **rest: Any) -> Verdict:
        """Answer `run`."""
        return self._call(Command(resume=answer), run, **rest)

    def go_on(self, run: str, **rest: Any) -> Verdict:
        """Continue `run` without an answer."""
        return self._call(None, run, **rest)

    def race(self, run: str, after: float) -> Verdict:
        """Answer `run` so many seconds after all racers were released."""
        self._barrier.wait(PATIENCE)
        time.sleep(after)
        return self.answer(run)

    def enter(self, url: str, run: str, after: float) -> Verdict:
        """Race for a block, without any framework."""
        passages = Gate(url)
        self._barrier.wait(PATIENCE)
        time.sleep(after)
        try:
            with passages.passage(run, "p"):
                self._journal.note(run, "block")
        except Exception as error:  # whatever it is, the test decides
            return verdict_of(error)
        return Verdict("served")

    def waits(self, run: str) -> bool:
        """Whether `run` waits for an answer."""
        return bool(self._graph.get_state(config(run)).interrupts)

    def _call(self, what: Any, run: str, **rest: Any) -> Verdict:
        options = {key: rest.pop(key) for key in list(rest) if key.startswith("remit_")}
        try:
            values = self._graph.invoke(what, config(run, **options), **rest)
        except BaseException as error:  # whatever it is, the test decides
            return verdict_of(error)
        values.pop("__interrupt__", None)
        return Verdict("served", values=values)


def _work(pipe: Any, folder: Path, barrier: Any) -> None:
    doing = Doing(folder, barrier)
    serve(pipe, lambda name, *args, **kwargs: getattr(doing, name)(*args, **kwargs))
    doing._stack.close()


class Team:
    """Workers that share a folder for their journal, and a barrier."""

    def __init__(self, folder: Path, size: int) -> None:
        # The framework is imported once, in a process that does nothing else and has no
        # threads; each worker is a fork of that one.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self._folder = folder
        self._barrier = self._context.Barrier(size)
        self.journal = Journal(folder)
        self.workers = [self._made() for _ in range(size)]
        self._greet(self.workers)

    def replace(self, worker: Worker) -> Worker:
        """A new worker in the place of another, which is ended if it lives still."""
        worker.kill()
        fresh = self._made()
        self._greet([fresh])
        self.workers[self.workers.index(worker)] = fresh
        return fresh

    def recover(self) -> None:
        """Replace whoever is dead, or busy with what a test did not wait for."""
        for worker in list(self.workers):
            if not worker.fit:
                self.replace(worker)

    def open(self, url: str, **options: Any) -> None:
        """Have every worker open a checkpointer; the first makes the tables."""
        for worker in self.workers:
            worker.tell("open", url, **options)
        for worker in self.workers:
            worker.result("open")

    def race(self, run: str, spread: float) -> list[Verdict]:
        """Have all answer `run`, over so many seconds."""
        return self.all(spread, "race", run)

    def all(self, spread: float, name: str, *args: Any) -> list[Verdict]:
        """Have all race to do something, each told when to begin."""
        last = max(len(self.workers) - 1, 1)
        for number, worker in enumerate(self.workers):
            worker.tell(name, *args, spread * number / last)
        return [worker.result(name) for worker in self.workers]

    def end(self) -> None:
        """End them all."""
        for worker in self.workers:
            worker.dismiss()
        end = time.monotonic() + GRACE
        for worker in self.workers:
            worker.end(max(0.0, end - time.monotonic()))

    def _made(self) -> Worker:
        return Worker(self._context, _work, self._folder, self._barrier)

    @staticmethod
    def _greet(workers: list[Worker]) -> None:
        for worker in workers:
            worker.started()


@contextmanager
def team(folder: Path, size: int) -> Iterator[Team]:
    """`size` workers, which never outlive the context."""
    made = Team(folder, size)
    try:
        yield made
    finally:
        made.end()
