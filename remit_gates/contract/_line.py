"""Orders to a framework, each in a fresh process that a real SIGKILL can end.

Nothing of the framework is imported on this side: a driver process is JSON at the far end
of a socket, and a process that dies is an end of file.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit_gates.contract._order import DriverFailed, End, Pending


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
        prefix: A command that runs the interpreter's, such as one that changes the host.
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
    prefix: tuple[str, ...] = ()


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
        alone = not target.one_process
        pending = Pending(end, number, verb, details, self.last_words, alone=alone)
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
        with theirs, ExitStack() as undo:
            undo.callback(mine.close)
            process = self._hand_over(theirs)
            undo.pop_all()
        end = End(mine, process)
        self._ends.add(end)
        return end

    def _hand_over(self, theirs: socket.socket) -> subprocess.Popen[bytes] | None:
        """Have a fresh process serve `theirs`; that process, if it is a child of this one."""
        if not self.target.forks:
            return self._start("--one", theirs)
        if self._control is None:
            self._control, far = socket.socketpair()
            with far:
                self._process = self._start("--zygote", far)
        try:
            socket.send_fds(self._control, [b"."], [theirs.fileno()])
        except OSError:
            raise DriverFailed(f"the driver is gone: {self.last_words()}") from None
        return None

    def _start(self, mode: str, end: socket.socket) -> subprocess.Popen[bytes]:
        try:
            return self._popen(mode, end)
        except OSError as error:
            raise DriverFailed(f"{self.target.python} cannot be run: {error}") from None

    def _popen(self, mode: str, end: socket.socket) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 -- the interpreter that was asked for
                [
                    *self.target.prefix,
                    self.target.python,
                    "-m",
                    self.target.module,
                    mode,
                    str(end.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[end.fileno()],
                cwd=self.folder,
                env=_environment(self.folder, self.target.path),
                start_new_session=True,
            )


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
