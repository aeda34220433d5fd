"""Racers in processes of their own, which live through a session, and are let go together."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.waiting import PATIENCE


Prepare = Callable[..., Callable[[], Any]]
"""Makes ready in a racer's process, and returns what the race is."""


def _serve(pipe: Any) -> None:
    while (order := pipe.recv()) is not None:
        prepare, args = order
        try:
            race = prepare(*args)
            pipe.send("ready")
            pipe.recv()
            pipe.send(race())
        except Exception as error:  # whatever it is, the test decides
            pipe.send(error)


class Rivals:
    """Processes that race.

    Args:
        preload: The module whose functions they are given.
    """

    def __init__(self, preload: str) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([preload])
        self._racers: list[tuple[Any, Any]] = []

    def race(self, k: int, prepare: Prepare, *args: Any) -> list[Any]:
        """What came of `prepare(*args)` in `k` processes at once."""
        while len(self._racers) < k:
            near, far = self._context.Pipe()
            racer = self._context.Process(target=_serve, args=(far,), daemon=True)
            racer.start()
            far.close()
            self._racers.append((racer, near))
        pipes = [pipe for _, pipe in self._racers[:k]]
        for pipe in pipes:
            pipe.send((prepare, args))
        for pipe in pipes:
            ready = _received(pipe)
            assert ready == "ready", ready
        for pipe in pipes:
            pipe.send("go")
        return [_received(pipe) for pipe in pipes]

    def start(self, work: Callable[..., Any], *args: Any) -> Any:
        """A process that does `work(*args)`, to be killed by the test."""
        process = self._context.Process(target=work, args=args, daemon=True)
        process.start()
        return process

    def end(self) -> None:
        """End them all."""
        for racer, pipe in self._racers:
            if racer.is_alive():
                pipe.send(None)
            racer.join(2)
            racer.kill()
            racer.join()
            pipe.close()


@contextmanager
def rivals(preload: str) -> Iterator[Rivals]:
    """Processes that never outlive the context."""
    made = Rivals(preload)
    try:
        yield made
    finally:
        made.end()


def _received(pipe: Any) -> Any:
    assert pipe.poll(PATIENCE), "a racer never answered"
    return pipe.recv()
