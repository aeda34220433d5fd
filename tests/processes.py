"""Processes that are told over a pipe what to do, do one thing at a time, and can be killed."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.waiting import PATIENCE, until


START: Final = 90.0
"""Seconds that a worker may take to import a framework, on a machine that is busy."""


def serve(pipe: Any, do: Callable[..., Any]) -> None:
    """The far end: have `do` carry out each order, which is a name and arguments."""
    pipe.send((True, None))
    while (order := pipe.recv()) is not None:
        name, args, kwargs = order
        try:
            pipe.send((True, do(name, *args, **kwargs)))
        except BaseException:  # whatever it is, the test decides
            pipe.send((False, traceback.format_exc()))


class Worker:
    """The near end of a worker.

    Args:
        context: Makes processes.
        work: What the process does, with its end of the pipe and `args`; it calls `serve`,
            whose first answer is that it has started.
    """

    def __init__(self, context: Any, work: Callable[..., None], *args: Any) -> None:
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=work, args=(far, *args), daemon=True)
        self._process.start()
        far.close()
        self._owes = 1

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    def started(self) -> None:
        """Wait until it has started."""
        self.result("starting", START)

    @property
    def fit(self) -> bool:
        """Whether it is alive, and has done all that it was told."""
        return self._process.is_alive() and not self._owes

    @property
    def finished(self) -> bool:
        """Whether it has done what it was told last."""
        return bool(self._pipe.poll())

    def ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Have it do something, and wait for what comes of it."""
        self.tell(name, *args, **kwargs)
        return self.result(name)

    def tell(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Have it do something; `result` waits for what comes of it."""
        self._pipe.send((name, args, kwargs))
        self._owes += 1

    def result(self, name: str = "its order", patience: float = PATIENCE) -> Any:
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

    def end(self, grace: float = 0.0) -> None:
        """End it, unless it does so itself within `grace` seconds."""
        self._process.join(grace)
        self.kill()
        self._pipe.close()
