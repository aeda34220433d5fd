"""Worker processes that never outlive the block that started them, nor keep it waiting
for ever."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from remit_gates._demo.journal import PATIENCE


START: Final = 60.0
"""Seconds that the workers may take to import the framework."""

GRACE: Final = 2.0


class Worker:
    """The near end of one worker process."""

    def __init__(self, number: int, folder: Path, store: str | None) -> None:
        self.number = number
        self._log = folder / f"worker-{number}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "remit_gates._demo.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
                encoding="utf-8",
                # An interrupt from the keyboard is for the parent, which ends its workers.
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._orders = _pipe(self._process.stdin)
        self._lines = _pipe(self._process.stdout)
        self._replies: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._send({"folder": str(folder), "store": store})

    def order(self, do: str, **details: object) -> None:
        """Have the worker do something; `result` waits for it."""
        self._send({"do": do, **details})

    def ask(self, do: str, **details: object) -> Any:
        """Have the worker do something, and wait for it."""
        self.order(do, **details)
        return self.result(do)

    @property
    def replied(self) -> bool:
        """Whether `result` would return at once."""
        return not self._replies.empty()

    def result(self, what: str, timeout: float = PATIENCE) -> Any:
        """What the last order came to.

        Raises:
            TimeoutError: The worker did not reply in time.
            ChildProcessError: It could not do it, or is gone.
        """
        try:
            reply = self._replies.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"{self} did not finish '{what}' within {timeout:.0f} s") from None
        if reply is None:
            raise self._gone(what)
        if "error" in reply:
            raise ChildProcessError(f"{self} could not do '{what}': {reply['error']}")
        return reply.get("done")

    def dismiss(self) -> None:
        """Let the process end once it has done what it was told."""
        with suppress(OSError):
            self._orders.close()

    def end(self, grace: float) -> None:
        """End the process; `grace` is how many seconds it may take to do so itself."""
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: dict[str, object]) -> None:
        try:
            self._orders.write(json.dumps(message) + "\n")
            self._orders.flush()
        except BrokenPipeError:
            raise self._gone(str(message.get("do", "start"))) from None

    def _listen(self) -> None:
        with self._lines:
            for line in self._lines:
                self._replies.put(json.loads(line))
        self._replies.put(None)

    def _gone(self, what: str) -> ChildProcessError:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return ChildProcessError(
            f"{self} died during '{what}': {lines[-1] if lines else 'it said nothing'}"
        )

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.pid})"


@contextmanager
def workers(count: int, folder: Path, store: str | None) -> Iterator[list[Worker]]:
    """`count` workers, numbered from 1, which have imported all they need."""
    with ExitStack() as stack:
        started: list[Worker] = []
        clean = False
        stack.callback(lambda: _end(started, GRACE if clean else 0.0))
        for number in range(1, count + 1):
            worker = Worker(number, folder, store)
            started.append(worker)
        end = time.monotonic() + START
        for worker in started:
            worker.result("start", max(0.0, end - time.monotonic()))
        yield started
        clean = True


def _end(started: list[Worker], grace: float) -> None:
    for worker in started:
        worker.dismiss()
    end = time.monotonic() + grace
    for worker in started:
        worker.end(max(0.0, end - time.monotonic()))


def _pipe(end: IO[str] | None) -> IO[str]:
    if end is None:
        raise ChildProcessError("a worker was started without pipes")
    return end


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        # A worker imports exactly what this process imports, wherever it was started.
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONSAFEPATH": "1",
        # A demo of effects has none of its own: no traces leave the machine.
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
    }
