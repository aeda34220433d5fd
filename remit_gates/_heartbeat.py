"""One thread a process does what must not wait for an event loop: it renews leases, and
settles what could not be settled when its run ended.

Every job is due at a time and says when it is due again. Adding a job wakes the thread,
so that a short lease never waits for the end of a long sleep.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from remit_gates._observe import logger


Job = Callable[[], "float | None"]
"""Does a job once; returns the seconds until it is due again, or None when it is done."""


class Heartbeat:
    """Jobs, each due at a time of one monotonic clock.

    Args:
        clock: The monotonic clock, in seconds.
        threaded: Whether a daemon thread performs the jobs. Without it the owner calls
            `step`, as tests on a fake clock do.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, threaded: bool = True
    ) -> None:
        self._clock = clock
        self._threaded = threaded
        self.reset()

    def reset(self) -> None:
        """Forget every job, as a forked child must: they are its parent's."""
        self._wake = threading.Condition()
        self._due: dict[Job, float] = {}
        self._sleeps_until = -math.inf
        self._shortest = math.inf
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._due)

    def add(self, job: Job, delay: float) -> None:
        """Have `job` done in `delay` seconds."""
        with self._wake:
            at = self._due[job] = self._clock() + delay
            self._shortest = min(self._shortest, delay)
            if self._threaded and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(
                    target=self._run, name="remit-gates-heartbeat", daemon=True
                )
                self._thread.start()
            if at < self._sleeps_until:
                self._sleeps_until = -math.inf
                self._wake.notify_all()

    def remove(self, job: Job) -> None:
        """Forget `job`, if it is still there. It may be running at this moment."""
        with self._wake:
            self._due.pop(job, None)

    def step(self) -> float | None:
        """Do every job that is due; the seconds until the next, None when there is none."""
        while True:
            with self._wake:
                now = self._clock()
                ready = [job for job, at in self._due.items() if at <= now]
                if not ready:
                    return min(self._due.values()) - now if self._due else None
            for job in ready:
                again = self._do(job)
                with self._wake:
                    # It may have been removed meanwhile, and then it stays removed.
                    if job in self._due:
                        if again is None:
                            del self._due[job]
                        else:
                            self._due[job] = self._clock() + again

    @staticmethod
    def _do(job: Job) -> float | None:
        try:
            return job()
        except Exception:  # noqa: BLE001 -- one job must not end the others
            logger.exception("a job of the heartbeat failed and is not tried again")
            return None

    def _run(self) -> None:
        me = threading.current_thread()
        while self._thread is me:
            self.step()
            with self._wake:
                # Looked at again under the lock: a job may have come since `step`. Where they
                # come and go faster than this thread wakes, the next one will be as long, so
                # that it need not wake it again; where none came, there is nothing to wait for.
                now = self._clock()
                self._sleeps_until = min(self._due.values(), default=now + self._shortest)
                self._shortest = math.inf
                wait = self._sleeps_until - now
                if wait > 0:
                    self._wake.wait(None if wait == math.inf else min(wait, 3600.0))
                self._sleeps_until = -math.inf


HEARTBEAT: Final = Heartbeat()
"""The heartbeat of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HEARTBEAT.reset)
