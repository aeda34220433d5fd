"""What a probe works with: scenes, in which orders are given and the ledger is read.

A scene is closed with all that it started: what is still held is let go, what still runs is
ended. Waiting is for something that shows, in the ledger or in the framework's own state.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from remit_gates.contract._line import Line
from remit_gates.contract._model import Mark, Scene, telling
from remit_gates.contract._order import DriverFailed, Pending
from remit_gates.contract.drivers._kit import PROGRAMS, ledger


WAIT: Final = 30.0
POLL: Final = 0.01


class NotApplicable(Exception):
    """Raised when a framework has nothing that a scene could be about."""


class Lab:
    """One target, and the scenes that were played on it.

    Attributes:
        line: Where orders go.
        about: What the driver says of its framework.
        racers: How many deliveries race.
        tries: How often a scene that may come out either way is played.
        patience: Seconds to wait for a framework to write what it has finished.
        scenes: All that was played.
    """

    def __init__(self, line: Line, *, racers: int, tries: int, patience: float) -> None:
        self.line = line
        self.racers = racers
        self.tries = tries
        self.patience = patience
        self.scenes: list[Scene] = []
        self.about: dict[str, Any] = {}

    @contextmanager
    def scene(self, title: str, program: str, *judged: str) -> Iterator[Play]:
        """Play one scene, which says something about the properties `judged`."""
        scene = Scene(title, program, judged=list(judged))
        self.scenes.append(scene)
        play = Play(self, scene)
        try:
            yield play
        except NotApplicable as finding:
            scene.skipped = str(finding)
        except DriverFailed as failure:
            scene.failed = str(failure)
        finally:
            play.end()


class Play:
    """A scene while it is played, on a run of its own."""

    def __init__(self, lab: Lab, scene: Scene) -> None:
        self.scene = scene
        self.run = f"{scene.program}-{uuid.uuid4().hex[:12]}"
        self._lab = lab
        self._line = lab.line
        self._pending: list[Pending] = []

    def order(self, verb: str, *, wait: bool = False, **details: Any) -> Pending:
        """Give one order on the run."""
        self.needs(self._lab.about.get("programs", {}).get(self.scene.program))
        self.needs(self._lab.about.get("verbs", {}).get(verb))
        pending = self._line.order(
            verb, wait=wait, run=self.run, program=self.scene.program, **details
        )
        self._pending.append(pending)
        return pending

    def do(self, verb: str, **details: Any) -> dict[str, Any]:
        """Give one order, and wait for it."""
        return self.order(verb, **details).wait()

    def needs(self, missing: str | None) -> None:
        """Say that the scene cannot be played without what is `missing`, if anything is."""
        if missing:
            raise NotApplicable(missing)

    def needs_processes(self) -> None:
        """Say that the scene is one of processes that die."""
        if self._line.target.one_process:
            raise NotApplicable("what is kept in memory dies with its process")

    def parked(self, **details: Any) -> Any:
        """Start the run, which must park; the name of its pause."""
        reply = self.do("start", **details)
        if reply["outcome"] != "ok" or reply["value"]["status"] != "parked":
            raise DriverFailed(f"the run did not park: {self._pending[-1].call.said}")
        return reply["value"]["handle"]

    def look(self) -> dict[str, Any]:
        """How the run stands, as a fresh process sees it."""
        reply = self.do("state")
        if reply["outcome"] != "ok":
            raise DriverFailed(f"the run cannot be looked at: {self._pending[-1].call.said}")
        value: dict[str, Any] = reply["value"]
        return value

    def go_on(self, **details: Any) -> dict[str, Any]:
        """Continue the run without an answer. A refusal for the time being is waited out."""
        end = time.monotonic() + WAIT
        while True:
            reply = self.do("go_on", **details)
            soon = reply["outcome"] == "refused" and reply.get("kind") == "InProgress"
            if not soon or time.monotonic() > end:
                return reply
            time.sleep(0.2)

    def recover(self) -> dict[str, Any]:
        """Continue a run that broke, as its user would: where it asks again, it is answered."""
        reply = self.go_on()
        if reply["outcome"] == "ok" and reply["value"]["status"] == "parked":
            self.saw("it asked again, and was answered again")
            return self.do("answer", value="yes", delivery="d2", handle=reply["value"]["handle"])
        if reply["outcome"] != "ok":
            self.saw("it did not go on")
        return reply

    def hold(self, step: str, when: str = "before") -> dict[str, str]:
        """A fault that holds a process at `step` until `let_go`."""
        until = str(self._line.folder / f"go-{self.run}-{step}")
        return {"kind": "hold", "step": step, "when": when, "until": until}

    def let_go(self, step: str) -> None:
        """Let everybody who is held at `step` go on, those to come as well."""
        (self._line.folder / f"go-{self.run}-{step}").touch()

    def until(self, seen: Callable[[], bool], what: str, timeout: float = WAIT) -> None:
        """Wait until `seen`.

        Raises:
            DriverFailed: It was not.
        """
        end = time.monotonic() + timeout
        while not seen():
            if time.monotonic() > end:
                raise DriverFailed(f"never seen: {what}")
            time.sleep(POLL)

    def held(self, step: str, *running: Pending) -> None:
        """Wait until a process is held at `step`, or all of `running` have ended."""
        self.until(
            lambda: bool(self.count("held")[step]) or all(each.over for each in running),
            f"step {step} is held",
        )

    def frontier(self, due: set[str], timeout: float | None = None) -> set[str]:
        """The steps that are durably finished, once they include `due` or time is up."""
        end = time.monotonic() + (self._lab.patience if timeout is None else timeout)
        while True:
            done = set(self.look()["done"])
            if due <= done or time.monotonic() > end:
                return done
            time.sleep(0.1)

    def marks(self) -> list[Mark]:
        """The ledger of the run so far."""
        try:
            text = ledger(self._line.folder, self.run).read_bytes()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        rows = map(json.loads, whole.splitlines())
        return [Mark(r["kind"], r["step"], r["value"], r["order"], r["at"]) for r in rows]

    def count(self, kind: str, since: int = 0) -> Counter[str]:
        """How often each step has an entry of `kind`, from the entry number `since`."""
        return Counter(mark.step for mark in self.marks()[since:] if mark.kind == kind)

    def keep(self) -> None:
        """Keep the ledger of the run, before the scene goes on with another one."""
        self.scene.marks += self.marks()
        self._line.folder.joinpath(ledger("", self.run)).unlink(missing_ok=True)

    def saw(self, line: str) -> None:
        """Keep what was counted."""
        self.scene.saw.append(line)

    def fault(self, name: str, figure: str) -> None:
        """The property `name` is violated; the first figure is kept."""
        self.scene.faults.setdefault(name, figure)

    def end(self) -> None:
        """Let go and end all that was started, and keep the record."""
        for stage in PROGRAMS[self.scene.program]:
            for step in stage:
                self.let_go(step)
        for pending in self._pending:
            try:
                pending.wait(10.0)
            except DriverFailed:
                pending.kill()
        calls = [pending.call for pending in self._pending]
        self.keep()
        marks = self.scene.marks
        zero = min((call.began for call in calls), default=0.0)
        for call in calls:
            call.began = round(call.began - zero, 4)
            call.ended = None if call.ended is None else round(call.ended - zero, 4)
        for mark in marks:
            mark.at = round(mark.at - zero, 4)
        self.scene.calls = telling(calls)
