"""Calls that are let go at once, or go on beside a test. Knows no framework."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from tests.waiting import PATIENCE


def outcome(call: Callable[[], Any]) -> Any:
    """What `call` returns, or the exception that it raises."""
    try:
        return call()
    except Exception as error:
        return error


def race(*calls: Callable[[], Any]) -> list[Any]:
    """The outcomes of `calls`, all let go at the same moment."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(PATIENCE)
        return outcome(call)

    with ThreadPoolExecutor(len(calls)) as pool:
        return [*pool.map(run, calls)]


class Background:
    """`call` in a thread of its own, while the test does something else."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._future = self._pool.submit(outcome, call)

    @staticmethod
    def first(count: int, calls: list[Background]) -> None:
        """Wait until `count` of `calls` have returned."""
        done = as_completed((call._future for call in calls), timeout=PATIENCE)
        for _ in range(count):
            next(done)

    def result(self) -> Any:
        """Its outcome."""
        found = self._future.result(PATIENCE)
        self._pool.shutdown()
        return found
