"""What every driver shares: the order that it is given, the ledger, and the faults.

An order is one verb on one run, carried out in a process of its own: JSON comes in, JSON
goes out, and nothing else passes between the harness and the framework. What ran is read
from the ledger, a file that the framework does not know of.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol


PROGRAMS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "plain": (("a",), ("b",), ("c",)),
    "approval": (("a",), ("ask",), ("b",), ("c",)),
    "twice": (("a",), ("ask",), ("b",), ("ask2",), ("c",)),
    "fan": (("p", "q"), ("j",)),
    "invalid": (("a",), ("bad",)),
}
"""What runs are made of: stages, one after the other; the steps of one stage run side by
side. A step whose name starts with `ask` asks for an answer, `bad` writes a state that does
not fit its schema, and any other one is an effect that depends on the last answer."""

PATIENCE: Final = 60.0
POLL: Final = 0.01


class Refused(Exception):
    """Raised by a driver whose framework refuses a delivery in words of its own."""


class Injected(Exception):
    """The exception that a step raises because the harness said so."""


@dataclass(frozen=True)
class Order:
    """One verb on one run.

    Attributes:
        verb: `describe`, `setup`, `start`, `answer`, `go_on`, `fork`, `edit_invalid`, `state`.
        number: Numbers the order, in the ledger too.
        run: Name of the run.
        program: Which of `PROGRAMS` the run goes through.
        value: The answer, for `answer` and `fork`.
        delivery: Name of the message that carries the answer; a redelivery has the same.
        handle: What the pause was called, in a reply's `handle`, when its question was shown.
        bound: For `answer`: name the pause by `handle`, as precisely as the interface can.
            Otherwise deliver as users of the framework usually do.
        faults: What goes wrong on the way: `{"kind": "raise" | "kill" | "hold", "step": ...,
            "when": "before" | "after"}` its effect; a hold has the path `until`.
        backend: Name of the place where runs are persisted.
        url: Its address, where it has one.
        folder: A folder of the harness, for files.
        gated: Whether what persists is wrapped in `gate()`.
        options: What the framework at hand needs besides.
    """

    verb: str
    number: int
    run: str = ""
    program: str = "plain"
    value: str | None = None
    delivery: str | None = None
    handle: Any = None
    bound: bool = False
    faults: tuple[Mapping[str, str], ...] = ()
    backend: str = ""
    url: str | None = None
    folder: str = ""
    gated: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The stages of the program."""
        return PROGRAMS[self.program]

    def step(self, name: str, value: str | None = None) -> None:
        """Run the step `name` of the program: its effect, and what is to go wrong at it."""
        self.ran(name, value)
        self.effect(name, value)

    def ran(self, name: str, value: str | None = None) -> None:
        """Say that the framework runs the step `name`, whether or not its effect follows."""
        self._note("ran", name, value)
        self._fail(name, "before")

    def effect(self, name: str, value: str | None = None) -> None:
        """Fire the effect of the step `name`."""
        self._note("effect", name, value)
        self._fail(name, "after")

    def took(self, ask: str, value: str | None) -> None:
        """Say that the question `ask` got its answer. Once an answer, by the code that asked."""
        self._note("took", ask, value)

    def _note(self, kind: str, step: str, value: str | None) -> None:
        entry = {
            "kind": kind,
            "step": step,
            "value": value,
            "order": self.number,
            "delivery": self.delivery,
            "pid": os.getpid(),
            "at": time.time(),
        }
        file = os.open(ledger(self.folder, self.run), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # One write to a file opened so: no process loses or splits another's entry.
            os.write(file, json.dumps(entry).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def _fail(self, step: str, when: str) -> None:
        for fault in self.faults:
            if (fault["step"], fault.get("when", "before")) != (step, when):
                continue
            if fault["kind"] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault["kind"] == "raise":
                raise Injected(f"step {step} was told to fail")
            self._note("held", step, None)
            end = time.monotonic() + PATIENCE
            while not Path(fault["until"]).exists():
                if time.monotonic() > end:
                    raise TimeoutError(f"nobody let step {step} go on")
                time.sleep(POLL)


class Driver(Protocol):
    """What a driver module gives to `main`: a class, made anew for each order.

    `describe` answers `{"framework", "version", "verbs": {verb: why not | None}, "programs":
    {program: why not | None}, "gate": why not | None}`; a verb or program that is not named is
    there. The other verbs answer with how the run now stands: `{"status": "absent" | "parked" |
    "finished" | "unfinished", "asks": [...], "done": [...], "valid": bool, "handle": ...}`,
    where `done` are the steps that are durably finished, and `handle` is what a later order
    needs to go back to this very pause.
    """

    def __init__(self, order: Order) -> None: ...

    def describe(self) -> dict[str, Any]: ...

    def setup(self) -> None: ...

    def start(self) -> dict[str, Any]: ...

    def answer(self) -> dict[str, Any]: ...

    def go_on(self) -> dict[str, Any]: ...

    def fork(self) -> dict[str, Any]: ...

    def edit_invalid(self) -> dict[str, Any]: ...

    def state(self) -> dict[str, Any]: ...


VERBS: Final = (
    "describe",
    "setup",
    "start",
    "answer",
    "go_on",
    "fork",
    "edit_invalid",
    "state",
)


def ledger(folder: str | Path, run: str) -> Path:
    """The file in which the effects of `run` are counted."""
    return Path(folder) / f"ledger-{run}.jsonl"


def adapter(name: str) -> Any:
    """The gate's adapter of this name, which may be one of a later release than this one."""
    return importlib.import_module(f"remit_gates.{name}")


def no_gate(name: str) -> str | None:
    """Why there is no gated column, if there is none."""
    try:
        adapter(name)
    except ImportError as error:
        return f"no gate: {error}"
    return None


def main(driver: Callable[[Order], Driver]) -> None:
    """Carry out orders. `--zygote FD`: fork a process for each connection that comes in by the
    socket FD, so that the framework is imported once. `--one FD`: serve that connection.
    """
    mode, number = sys.argv[1:3]
    # Whatever a framework prints is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    end = socket.socket(fileno=int(number))
    if mode == "--one":
        _serve(end, driver)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a dead child is gone at once
    while True:
        try:
            message, (descriptor,), *_ = socket.recv_fds(end, 1, 1)
        except ValueError:  # no descriptor: the harness is gone
            return
        if not message:
            return
        if os.fork() == 0:
            end.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _serve(socket.socket(fileno=descriptor), driver)
        os.close(descriptor)


def _serve(end: socket.socket, driver: Callable[[Order], Driver]) -> NoReturn:
    """Serve one connection. Its end is this process's end, whatever still runs in it."""
    stream = end.makefile("r", encoding="utf-8")
    lock = threading.Lock()
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    starts: dict[int, threading.Event] = {}

    def say(reply: Mapping[str, Any]) -> None:
        with lock:
            end.sendall(json.dumps(reply).encode() + b"\n")

    def listen() -> None:
        for line in stream:
            message = json.loads(line)
            if "go" in message:
                starts[message["go"]].set()
            else:
                starts[message["number"]] = threading.Event()
                orders.put(message)
        os._exit(0)

    def carry_out(message: dict[str, Any]) -> None:
        number, delay = message["number"], message.pop("delay", 0.0)
        try:
            made = driver(Order(**message))
            say({"number": number, "ready": os.getpid()})
            starts[number].wait(PATIENCE)
            time.sleep(delay)
            reply = {"outcome": "ok", "value": getattr(made, message["verb"])()}
        except Exception as error:  # noqa: BLE001 -- whatever it is, the harness is told
            names = {base.__name__ for base in type(error).__mro__}
            refused = names & {"ResumeRefused", "Refused"}
            reply = {
                "outcome": "refused" if refused else "error",
                "kind": type(error).__name__,
                "message": str(error),
            }
        say({"number": number, **reply})

    threading.Thread(target=listen, daemon=True).start()
    while True:
        message = orders.get()
        message["faults"] = tuple(message.get("faults", ()))
        if message.pop("aside", False):
            threading.Thread(target=carry_out, args=(message,), daemon=True).start()
        else:
            # Frameworks may want the main thread.
            carry_out(message)
