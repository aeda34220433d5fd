"""The near end of a driver process, and of an order that was given to it.

A process that dies is an end of file, and then every order that it was given is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from remit_gates.contract._model import Call


START: Final = 120.0
"""Seconds that a driver may take to import its framework."""

PATIENCE: Final = 60.0


class DriverFailed(Exception):
    """Raised when the harness's own machinery did not work; nothing was measured."""


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
        self,
        end: End,
        number: int,
        verb: str,
        details: Mapping[str, Any],
        last_words: Callable[[], str],
        *,
        alone: bool,
    ) -> None:
        self._last_words = last_words
        self._alone = alone
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
        return self._reply or {}

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
            self.call.said = "killed" if self.call.pid else self._last_words()
        else:
            # The first line: what follows it are traces, of no use away from where they arose.
            first = (reply["message"].splitlines() or [""])[0]
            self.call.said = f"{reply['kind']}: {first}"[:300]
        if self._alone:
            self._end.close()
