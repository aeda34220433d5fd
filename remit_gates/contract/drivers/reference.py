"""The reference framework: as small as a framework can be that keeps the whole contract.

A run is a log, and what happens next is a function of the set of what is in it. `mutant`
breaks it in one place; each such fault must be found by the probes of exactly the properties
that it breaks, or those probes are worth nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from remit_gates.contract.drivers._kit import Order, Refused, main


MUTANTS: Final = {
    "replay": "a recovery runs every step again",
    "prefix_replay": "a recovery runs finished steps again, and only their effects are kept back",
    "lazy_persist": "a step is recorded after the next one has begun",
    "initial_values": "a recovery starts from the initial state",
    "ignored_fork": "a fork is served the answer that was recorded before",
    "invalid_persist": "a state that does not fit is written all the same",
    "invalid_edit": "an edit that does not fit is written all the same",
    "nondeterministic_recovery": "what a recovery does depends on which branch wrote last",
    "double_consume": "an answer is taken again, and only its effects are kept back",
    "no_lock": "looking at a pause and taking it are two steps",
    "unbound": "an answer goes to whatever the run asks when it arrives",
    "fork_is_retry": "a fork is taken for a duplicate",
    "retry_is_fork": "a duplicate is taken for a fork",
    "refuses_forever": "a run that failed is never served again",
}


class Reference:
    """The driver and the framework in one."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._mutant = str(order.options.get("mutant", ""))
        self._run = order.run
        self._recovering = False
        self._known: set[str] | None = None
        self._looked: list[str] | None = None
        if self._mutant == "no_lock" and order.verb == "answer":
            # A race that can be counted on: a driver is made before its process says that it
            # is ready, and nobody is let go before all are. So everybody looks, and then all take.
            self._known, self._looked = {*self._done(), *self._asks()}, self._asks()

    def describe(self) -> dict[str, Any]:
        return {
            "framework": "reference",
            "version": self._mutant or "1",
            "gate": "the reference needs none",
        }

    def setup(self) -> None:
        """Nothing to set up."""

    def start(self) -> dict[str, Any]:
        with self._held():
            if self._log():
                raise Refused(f"run {self._run} exists")
            self._write("began", value=None, total=0)
            return self._go()

    def answer(self) -> dict[str, Any]:
        if self._mutant == "no_lock":
            return self._take(self._awaited())
        with self._held():
            if self._mutant == "double_consume" and self._answered():
                self._order.took("ask", self._order.value)
                return self.state()
            if self._mutant == "retry_is_fork" and self._answered() and not self._asks():
                return self._branch()
            return self._take(self._awaited())

    def go_on(self) -> dict[str, Any]:
        with self._held():
            self._recovering = True
            if self._mutant == "refuses_forever":
                raise Refused("this run did not end well")
            return self._go()

    def fork(self) -> dict[str, Any]:
        if self._mutant == "fork_is_retry":
            raise Refused("this pause was answered")
        return self._branch()

    def edit_invalid(self) -> dict[str, Any]:
        with self._held():
            self._persist("edited", checked=self._mutant != "invalid_edit", total="lots")
            return self.state()

    def state(self) -> dict[str, Any]:
        log, asks = self._log(), self._asks()
        every = {step for stage in self._order.stages for step in stage}
        finished = every <= set(self._done())
        status = "parked" if asks else "finished" if finished else "unfinished"
        return {
            "status": status if log else "absent",
            "asks": asks,
            "done": self._done(),
            "valid": all(isinstance(entry.get("total", 0), int) for entry in log),
            "handle": {"run": self._run, "ask": asks[0]} if asks else None,
        }

    def _awaited(self) -> str:
        """The question that this delivery answers."""
        asks = self._asks() if self._looked is None else self._looked
        meant = (self._order.handle or {}).get("ask")
        if asks and (self._mutant == "unbound" or meant in (None, asks[0])):
            return asks[0]
        raise Refused(f"run {self._run} does not wait for this answer")

    def _take(self, ask: str) -> dict[str, Any]:
        self._write("answered", step=ask, value=self._order.value)
        self._order.took(ask, self._order.value)
        return self._go()

    def _branch(self) -> dict[str, Any]:
        """Go back to a pause, on a branch that has its own answer."""
        handle = self._order.handle
        self._run = f"{handle['run']}~{self._order.number}"
        for entry in self._log(handle["run"]):
            if entry["kind"] == "answered" and entry["step"] == handle["ask"]:
                break
            self._append(entry)
        first = [e["value"] for e in self._log(handle["run"]) if e["kind"] == "answered"]
        value = first[0] if self._mutant == "ignored_fork" and first else self._order.value
        self._write("answered", step=handle["ask"], value=value)
        return self._go()

    def _go(self) -> dict[str, Any]:
        """Run what is not done, in order, until a question or the end."""
        again = self._recovering and self._mutant in ("replay", "prefix_replay")
        before = set(self._done()) if self._known is None else self._known
        late: list[str] = []
        for stage in self._order.stages:
            due = [step for step in stage if again or step not in before]
            if stage[0].startswith("ask"):
                if stage[0] not in before:
                    for step in late:
                        self._finish(step)
                    return self._park(stage[0])
                continue
            if len(due) == 1:
                self._step(due[0], quiet=self._mutant == "prefix_replay" and due[0] in before)
            else:
                self._side_by_side(due)
            if self._mutant == "lazy_persist":
                late, due = due, late
            for step in due:
                self._finish(step)
        for step in late:
            self._finish(step)
        return self.state()

    def _park(self, ask: str) -> dict[str, Any]:
        self._write("asked", step=ask)
        return self.state()

    def _step(self, step: str, *, quiet: bool = False) -> None:
        value = self._value()
        self._order.ran(step, value)
        if not quiet:
            self._order.effect(step, value)

    def _side_by_side(self, steps: list[str]) -> None:
        def run(step: str) -> None:
            self._step(step)
            self._finish(step)

        threads = [threading.Thread(target=run, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _finish(self, step: str) -> None:
        if step in self._done():
            return
        wrong = step == "bad"
        total = "lots" if wrong else 0
        self._persist("done", checked=self._mutant != "invalid_persist", step=step, total=total)

    def _persist(self, kind: str, *, checked: bool, **entry: Any) -> None:
        if checked and not isinstance(entry["total"], int):
            raise ValueError(f"total={entry['total']!r} is no number; nothing was written")
        self._write(kind, **entry)

    def _value(self) -> str | None:
        log = self._log()
        if self._recovering and self._mutant == "initial_values":
            return None
        if self._recovering and self._mutant == "nondeterministic_recovery":
            done = [entry["step"] for entry in log if entry["kind"] == "done"]
            if {"p", "q"} <= set(done):
                return str(done[-1])
        values = [entry["value"] for entry in log if entry["kind"] == "answered"]
        return values[-1] if values else None

    def _done(self) -> list[str]:
        log = self._log()
        return sorted({entry["step"] for entry in log if entry["kind"] in ("done", "answered")})

    def _answered(self) -> bool:
        return any(entry["kind"] == "answered" for entry in self._log())

    def _asks(self) -> list[str]:
        asked = {entry["step"] for entry in self._log() if entry["kind"] == "asked"}
        return sorted(asked - set(self._done()))

    def _log(self, run: str | None = None) -> list[dict[str, Any]]:
        try:
            lines = self._path(run or self._run).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def _write(self, kind: str, **entry: Any) -> None:
        self._append({"kind": kind, **entry})

    def _append(self, entry: dict[str, Any]) -> None:
        file = os.open(self._path(self._run), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps(entry).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def _path(self, run: str) -> Path:
        return Path(self._order.folder) / f"run-{run}.jsonl"

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The run, for this process alone; its death lets go."""
        with Path(self._order.folder, f"run-{self._run}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(f"run {self._run} is being served") from None
            yield


if __name__ == "__main__":
    main(Reference)
