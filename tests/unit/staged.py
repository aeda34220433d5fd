"""A store, a heartbeat and the process's clock, all of which obey the test.

Nothing here waits: time passes when a test says so, and the heartbeat does what has
become due on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest

from remit_gates import _claim, _keeper, _port, _telling
from remit_gates._heartbeat import Heartbeat
from remit_gates._model import Record, RunKey, Snapshot
from remit_gates._observe import Event, observed
from remit_gates.errors import StoreUnavailable
from remit_gates.stores import Store
from remit_gates.stores._threaded import ThreadedStore
from remit_gates.stores.memory import MemoryStore


PATIENCE: Final = 30.0
"""Seconds that anything waits for anything else at most."""


class Clock:
    """Seconds, which pass when they are told to."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Watched:
    """A store that notes each call, and can be made to fail.

    Attributes:
        calls: The names of the methods that were called, in order.
        failing: Raises the error of a method's call, if any; replaced by tests.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[str] = []
        self.failing: Callable[[str], None] = lambda name: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _call(self, name: str, *args: Any) -> Any:
        self.calls.append(name)
        self.failing(name)
        return getattr(self._store, name)(*args)

    def read(self, run: RunKey) -> Snapshot:
        snapshot: Snapshot = self._call("read", run)
        return snapshot

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        version: int | None = self._call("swap", run, expected, record, lease, durable)
        return version

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        renewed: bool = self._call("renew", run, token, lease)
        return renewed

    def delete(self, run: RunKey) -> bool:
        deleted: bool = self._call("delete", run)
        return deleted

    def setup(self) -> None:
        self._call("setup")

    def scan(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        return self._store.scan(*args, **kwargs)

    def prune(self, older_than: float) -> int:
        return self._store.prune(older_than)

    def close(self) -> None:
        self._store.close()

    def renewer(self) -> Store:
        return self

    @contextmanager
    def down(self, *names: str) -> Iterator[None]:
        """Have every call fail while the context lasts, or those of the methods `names`."""

        def fail(name: str) -> None:
            if not names or name in names:
                raise StoreUnavailable("down.")

        before, self.failing = self.failing, fail
        try:
            yield
        finally:
            self.failing = before


class Slow(ThreadedStore):
    """A store for async callers whose swaps wait while they are told to.

    Attributes:
        asked: Set once a swap has come.
        through: Set while swaps need not wait.
    """

    def __init__(self, store: Store, *, inline: bool = False) -> None:
        super().__init__(store, inline=inline)
        self._at_once = None
        self.asked = asyncio.Event()
        self.through = asyncio.Event()
        self.through.set()

    async def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        self.asked.set()
        await asyncio.wait_for(self.through.wait(), PATIENCE)
        return await super().swap(run, expected, record, lease, durable)

    def stop(self) -> None:
        """Have the next swap wait."""
        self.asked.clear()
        self.through.clear()


class Stage:
    """One process on a clock of the test's own.

    Attributes:
        clock: The clock of the process and of the store.
        store: The store.
        heartbeat: The heartbeat, which has no thread.
        events: What was told, in order.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Watched(MemoryStore(self.clock))
        self.heartbeat = Heartbeat(self.clock, threaded=False)
        self.events: list[Event] = []

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events so far."""
        return [event.kind for event in self.events]

    def passes(self, seconds: float) -> None:
        """Let time pass; each job of the heartbeat is done when it is due."""
        end = self.clock.now + seconds
        while (wait := self.heartbeat.step()) is not None and self.clock.now + wait <= end:
            self.clock.now += wait
        self.clock.now = end

    def stalls(self, seconds: float) -> None:
        """Let time pass while this process does nothing at all."""
        self.clock.now += seconds


@contextmanager
def staged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage on which the keeper of this process plays."""
    stage = Stage()
    monkeypatch.setattr(_keeper, "HEARTBEAT", stage.heartbeat)
    for module in (_claim, _keeper, _port, _telling):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=stage.clock))
    with observed(stage.events.append):
        yield stage
