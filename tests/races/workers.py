"""Worker processes that live through a whole module, and do one thing at a time.

A worker is told what to do over a pipe and answers once it has done it. Racers are told
first and released together, by a barrier that all of them share.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.types import Command

from remit_gates import Gate, RemitError, ResumeRefused, _liveness
from tests.races.graph import Journal, build, config
from tests.races.savers import saver, wrapper
from tests.waiting import PATIENCE, until


_HERE = _liveness._host

GRACE = 2.0
"""Seconds that all of them may take to end."""

START = 90.0
"""Seconds that the workers may take to import the framework, on a machine that is busy."""


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


def _serve(pipe: Any, folder: Path, barrier: Any) -> None:
    doing = Doing(folder, barrier)
    pipe.send((True, None))
    while (order := pipe.recv()) is not None:
        name, args, kwargs = order
        try:
            pipe.send((True, getattr(doing, name)(*args, **kwargs)))
        except BaseException:  # whatever it is, the test decides
            pipe.send((False, traceback.format_exc()))
    doing._stack.close()


class Worker:
    """The near end of a worker."""

    def __init__(self, context: Any, folder: Path, barrier: Any) -> None:
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, folder, barrier), daemon=True)
        self._process.start()
        far.close()
        self._owes = 1

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    @property
    def fit(self) -> bool:
        """Whether it is alive, and has done all that it was told."""
        return self._process.is_alive() and not self._owes

    def ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Have it do something, and wait for what comes of it."""
        self.tell(name, *args, **kwargs)
        return self.result(name)

    def tell(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Have it do something; `result` waits for what comes of it."""
        self._pipe.send((name, args, kwargs))
        self._owes += 1

    def result(self, name: str = "its order", patience: float = PATIENCE * 2) -> Any:
        """What came of the last order.

        Raises:
            TimeoutError: Nothing, in time.
            ChildProcessError: It could not do it, or died.
        """
        if not self._pipe.poll(patience):
            raise TimeoutError(f"worker {self.pid} did not finish {name!r} in {patience:g} s")
        try:
            done, result = self._pipe.recv()
        except EOFError:
            raise ChildProcessError(f"worker {self.pid} died during {name!r}") from None
        self._owes -= 1
        if not done:
            raise ChildProcessError(f"worker {self.pid} could not do {name!r}:\n{result}")
        return result

    def kill(self) -> None:
        """End it at once, as the kernel does when memory is short."""
        self._process.kill()
        self._process.join()

    def stop(self) -> None:
        """Have it stand still, as on a machine that is suspended."""
        os.kill(self.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "SIGSTOP to act")

    def go(self) -> None:
        """Let it move again."""
        os.kill(self.pid, signal.SIGCONT)

    def dismiss(self) -> None:
        """Have it end by itself."""
        if self._process.is_alive():
            self.go()
            with suppress(OSError):
                self._pipe.send(None)

    def end(self, grace: float) -> None:
        """End it, unless it does so itself within `grace` seconds."""
        self._process.join(grace)
        self.kill()
        self._pipe.close()


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
        self.journal.close()

    def _made(self) -> Worker:
        return Worker(self._context, self._folder, self._barrier)

    @staticmethod
    def _greet(workers: list[Worker]) -> None:
        for worker in workers:
            worker.result("starting", START)


@contextmanager
def team(folder: Path, size: int) -> Iterator[Team]:
    """`size` workers, which never outlive the context."""
    made = Team(folder, size)
    try:
        yield made
    finally:
        made.end()
