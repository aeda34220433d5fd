"""Worker processes with a gated CrewAI: each does one thing at a time, and can be killed.

CrewAI is imported once, in a process that does nothing else and has no threads; each
worker is a fork of that one.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from crewai.events import crewai_event_bus
from crewai.flow.persistence import SQLiteFlowPersistence
from crewai.state.checkpoint_config import CheckpointConfig

from remit_gates import Policy, _liveness
from remit_gates.crewai import gate
from tests.adapters import flows
from tests.journal import Journal
from tests.processes import Worker, serve
from tests.waiting import PATIENCE, until


MOST: Final = 8
"""Workers at the most."""


def kind(call: Any) -> str:
    """What `call` returns, or the name of the error that it raises."""
    try:
        result = call()
    except BaseException as error:
        return type(error).__name__
    return result if isinstance(result, str) else type(result).__name__


class Doing:
    """The far end: what a worker does when it is told to."""

    def __init__(self, folder: Path, barrier: Any) -> None:
        flows.current.append(Journal(folder))
        self._barrier = barrier
        self._host = _liveness._host

    def open(self, path: str, host: str | None = None, **policy: Any) -> str:
        """Open a gated persistence. `host` makes this process one of another machine."""
        here = self._host
        _liveness._host = here if host is None else lambda: f"{host}#elsewhere"  # type: ignore[assignment]
        self._path = path
        self._persistence = gate(SQLiteFlowPersistence(path), policy=Policy(**policy))
        return "opened"

    def answer(self, name: str, run: str, words: str) -> str:
        """Load a flow of the class `name` and resume it."""
        return kind(lambda: getattr(flows, name).from_pending(run, self._persistence).resume(words))

    def load(self, name: str, run: str) -> str:
        """Load a flow of the class `name`, to resume it later."""
        self._flow = getattr(flows, name).from_pending(run, self._persistence)
        return "loaded"

    def resume(self, words: str) -> str:
        """Resume the flow that was loaded."""
        return kind(lambda: self._flow.resume(words))

    def stand_after_the_pause(self, run: str, words: str) -> str:
        """Answer `run`, whose next pause is written, and stand still before its end is."""
        inner = SQLiteFlowPersistence(self._path)
        save = inner.save_pending_feedback

        def saved(**given: Any) -> None:
            save(**given)
            flows.current[-1].note(run, "paused again")
            flows.current[-1].stand(run, "paused again")

        object.__setattr__(inner, "save_pending_feedback", saved)
        return kind(lambda: flows.Twice.from_pending(run, gate(inner)).resume(words))

    def race(self, run: str, words: str, among: int, early: bool) -> str:
        """Answer `run` together with all the others."""
        if early:
            self.load("Plain", run)
        self._barrier[among].wait(PATIENCE)
        return self.resume(words) if early else self.answer("Plain", run, words)

    def kickoff(self, name: str, run: str, among: int) -> str:
        """Kick off `run` by its id, together with all the others."""
        flow = getattr(flows, name)(persistence=self._persistence)
        self._barrier[among].wait(PATIENCE)
        return kind(lambda: flow.kickoff(inputs={"id": run}))

    def checkpoint(self, path: str, folder: str, run: str) -> str:
        """Where the checkpoint is of a run that failed in its second method; empty if CrewAI
        did not write it. The thread that does reads what the run goes on to change, and dies
        of that now and then."""
        config = CheckpointConfig(location=folder, on_events=["method_execution_finished"])
        flow = flows.stepping(gate(SQLiteFlowPersistence(path)))(checkpoint=config)
        with contextlib.suppress(RuntimeError):
            flow.kickoff(inputs={"id": run, "fail": True})
        crewai_event_bus.flush()
        # A thread of the bus writes it, which a flush does not always wait for.
        try:
            until(lambda: _whole(Path(folder)), "a checkpoint", PATIENCE / 6)
        except TimeoutError:
            return ""
        return str(min(Path(folder).rglob("*.json")))


def _whole(folder: Path) -> bool:
    """Whether there is a checkpoint in `folder`, and it is written to its end."""
    try:
        return [json.loads(file.read_text("utf-8")) for file in folder.rglob("*.json")] != []
    except ValueError:
        return False


def _work(pipe: Any, folder: Path, barrier: Any) -> None:
    doing = Doing(folder, barrier)

    def do(name: str, *args: Any, **kwargs: Any) -> str:
        return kind(functools.partial(getattr(doing, name), *args, **kwargs))

    serve(pipe, do)


class Crew:
    """The workers of a session, made when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self._barrier = {size: self._context.Barrier(size) for size in range(1, MOST + 1)}
        self.workers: list[Worker] = []

    def open(self, path: str, size: int, **options: Any) -> list[Worker]:
        """`size` workers over the database at `path`."""
        for worker in self.workers:
            if not worker.fit:
                worker.end()
        self.workers = [worker for worker in self.workers if worker.fit]
        while len(self.workers) < size:
            self.workers.append(Worker(self._context, _work, self._folder, self._barrier))
            self.workers[-1].started()
        for worker in self.workers[:size]:
            worker.tell("open", path, **options)
        assert {worker.result() for worker in self.workers[:size]} == {"opened"}
        return self.workers[:size]

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Worker]:
        """A worker in which no flow has run yet."""
        worker = Worker(self._context, _work, self._folder, self._barrier)
        worker.started()
        try:
            yield worker
        finally:
            worker.end()

    def race(self, run: str, words: str, size: int, *, early: bool) -> list[str]:
        """What comes of `size` answers at once."""
        return self._all(size, "race", run, words, size, early)

    def kickoff(self, name: str, run: str, size: int) -> list[str]:
        """What comes of `size` kickoffs of one run at once."""
        return self._all(size, "kickoff", name, run, size)

    def _all(self, size: int, name: str, *args: Any) -> list[str]:
        for worker in self.workers[:size]:
            worker.tell(name, *args)
        return [worker.result() for worker in self.workers[:size]]


@contextlib.contextmanager
def crew_in(folder: Path) -> Iterator[Crew]:
    """Workers that share a journal in `folder`, and never outlive the context."""
    crew = Crew(folder)
    try:
        yield crew
    finally:
        for worker in crew.workers:
            worker.end()
