"""Orders to a framework, each in a fresh process that a real SIGKILL can end.

Nothing of the framework is imported on this side: a driver process is JSON at the far end
of a socket, and a process that dies is an end of file.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from remit_gates.contract._model import Call


START: Final = 120.0
"""Seconds that a driver may take to import its framework."""

PATIENCE: Final = 60.0


class DriverFailed(Exception):
    """Raised when the harness's own machinery did not work; nothing was measured."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured: a driver, the interpreter that it runs in, and where runs live.

    Attributes:
        module: The driver.
        python: The interpreter of the framework's environment.
        backend: Where runs are persisted: `file`, `memory`, `sqlite`, `postgres`...
        url: Its address, where it has one.
        gated: Whether what persists is gated.
        one_process: Whether runs live in the memory of a process.
        forks: Whether the framework bears a fork after its import.
        options: What the driver needs besides.
        label: What the backend is called in a report, if not by its name.
        path: Folders for the driver to import from, besides its environment's.
    """

    module: str
    python: str
    backend: str
    url: str | None = None
    gated: bool = False
    one_process: bool = False
    forks: bool = True
    options: Mapping[str, Any] | None = None
    label: str = ""
    path: tuple[str, ...] = ()


class Line:
    """A target that takes orders, until it is closed."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self._numbers = itertools.count(1)
        self._log = folder / "driver.log"
        self._ends: set[End] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._shared: End | None = None

    def order(self, verb: str, *, wait: bool = False, **details: Any) -> Pending:
        """Have `verb` done in a fresh process; with `wait`, not before `Pending.go()`."""
        number = next(self._numbers)
        target = self.target
        if target.one_process:
            if self._shared is None or self._shared.over.is_set():
                self._shared = self._open()
            end = self._shared
        else:
            end = self._open()
        message = {
            "verb": verb,
            "number": number,
            "backend": target.backend,
            "url": target.url,
            "folder": str(self.folder),
            "gated": target.gated,
            "options": dict(target.options or {}),
            "aside": target.one_process,
            **details,
        }
        pending = Pending(self, end, number, verb, details)
        end.send(message)
        if not wait:
            pending.go()
        return pending

    def last_words(self) -> str:
        """The last line that the drivers wrote, for a message."""
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def close(self) -> None:
        """End every process that was started here."""
        for end in list(self._ends):
            end.close()
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _open(self) -> End:
        mine, theirs = socket.socketpair()
        process = None
        with theirs:
            if self.target.forks:
                if self._control is None:
                    self._control, far = socket.socketpair()
                    with far:
                        self._process = self._start("--zygote", far)
                try:
                    socket.send_fds(self._control, [b"."], [theirs.fileno()])
                except OSError:
                    raise DriverFailed(f"the driver is gone: {self.last_words()}") from None
            else:
                process = self._start("--one", theirs)
        end = End(mine, process)
        self._ends.add(end)
        return end

    def _start(self, mode: str, end: socket.socket) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [self.target.python, "-m", self.target.module, mode, str(end.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[end.fileno()],
                cwd=self.folder,
                env=_environment(self.folder, self.target.path),
                start_new_session=True,
            )


class End:
    """The near end of one driver process."""

    def __init__(self, conn: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self.over = threading.Event()
        self._conn = conn
        self._process = process
        self._inboxes: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def inbox(self, number: int) -> queue.SimpleQueue[dict[str, Any]]:
        """Where the replies to the order `number` arrive."""
        inbox = self._inboxes.setdefault(number, queue.SimpleQueue())
        if self.over.is_set():
            inbox.put({"outcome": "died"})
        return inbox

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; a process that is gone says so by its end."""
        with contextlib.suppress(OSError):
            self._conn.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Hang up, upon which the process ends."""
        with contextlib.suppress(OSError):
            self._conn.shutdown(socket.SHUT_RDWR)
        self._conn.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._conn.makefile("r") as lines:
            for line in lines:
                reply = json.loads(line)
                self.inbox(reply["number"]).put(reply)
        self.over.set()
        for inbox in list(self._inboxes.values()):
            inbox.put({"outcome": "died"})


class Pending:
    """An order that was sent."""

    def __init__(
        self, line: Line, end: End, number: int, verb: str, details: Mapping[str, Any]
    ) -> None:
        self._line = line
        self._end = end
        self._inbox = end.inbox(number)
        self._reply: dict[str, Any] | None = None
        self._went = False
        shown = {k: v for k, v in details.items() if k not in ("run", "handle") and v}
        self.call = Call(number, verb, time.time(), details=shown)

    def ready(self) -> None:
        """Return when the process has imported and opened all that it needs."""
        if self.call.pid is None and self._reply is None:
            reply = self._next(START)
            if "ready" in reply:
                self.call.pid = reply["ready"]
            else:
                self._settle(reply)

    def go(self) -> None:
        """Let it begin."""
        if not self._went:
            self._went = True
            self.call.began = time.time()
            self._end.send({"go": self.call.number})

    def wait(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """What came of it: `{"outcome": "ok" | "refused" | "error" | "died", ...}`.

        Raises:
            DriverFailed: It did not come to an end in time.
        """
        self.go()
        self.ready()
        if self._reply is None:
            self._settle(self._next(timeout))
        assert self._reply is not None
        return self._reply

    @property
    def over(self) -> bool:
        """Whether `wait` would return at once."""
        while self._reply is None and not self._inbox.empty():
            reply = self._inbox.get()
            if "ready" in reply:
                self.call.pid = reply["ready"]
            else:
                self._settle(reply)
        return self._reply is not None

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.ready()
        if self.call.pid is not None and self._reply is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.call.pid, signal.SIGKILL)
            self.wait()

    def _next(self, timeout: float) -> dict[str, Any]:
        try:
            return self._inbox.get(timeout=timeout)
        except queue.Empty:
            raise DriverFailed(f"{self.call.verb} did not end within {timeout:.0f} s") from None

    def _settle(self, reply: dict[str, Any]) -> None:
        self._reply = reply
        self.call.ended = time.time()
        self.call.outcome = reply["outcome"]
        if reply["outcome"] == "ok":
            value = reply.get("value") or {}
            self.call.said = str(value.get("status", ""))
        elif reply["outcome"] == "died":
            self.call.said = "killed" if self.call.pid else self._line.last_words()
        else:
            self.call.said = f"{reply['kind']}: {reply['message']}"[:400]
        if not self._line.target.one_process:
            self._line._ends.discard(self._end)
            self._end.close()


def _environment(folder: Path, path: tuple[str, ...]) -> dict[str, str]:
    # A home of their own: frameworks leave files, read settings, and call their makers.
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "OTEL_SDK_DISABLED": "true",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "CREWAI_DISABLE_VERSION_CHECK": "true",
        "CREWAI_TESTING": "true",
        "CREWAI_STORAGE_DIR": str(folder),
    }
