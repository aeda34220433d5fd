"""What the operations of the kit are performed on: some store objects over one database.

The two benches differ in how they wait and in nothing else; a clause cannot tell them
apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar
from unittest import mock

from remit_gates._drive import adrive, drive
from remit_gates._model import Holder, Record, RunKey
from remit_gates._ops import Flow, Op
from remit_gates.stores import AsyncStore, Entry, Store


S = TypeVar("S", Store, AsyncStore)

PATIENCE: Final = 60.0
"""Seconds after which a race counts as hung."""


class Bench(Generic[S]):
    """A port on `store`. `others` makes more store objects over the same records, and
    `hook` those with a fault, by the name of the harness's method."""

    def __init__(self, store: S, others: Callable[[], S], hook: Callable[[str], S]) -> None:
        self.store: S = store
        self.others: Callable[[], S] = others
        self.hook: Callable[[str], S] = hook

    def read(self, run: RunKey) -> Any:
        return self.store.read(run)

    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> Any:
        return self.store.swap(run, expected, record, lease, durable)

    def renew(self, run: RunKey, token: int, lease: float) -> Any:
        return self.store.renew(run, token, lease)

    def load(self) -> Any:
        raise NotImplementedError

    def dead(self, holder: Holder) -> Any:
        raise NotImplementedError

    def now(self) -> Any:
        raise NotImplementedError

    def on(self, store: S) -> Any:
        """The same bench with another store object on it."""
        return type(self)(store, self.others, self.hook)


class SyncBench(Bench[Store]):
    """Waits by blocking; races in threads."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def scan(self, *args: Any, **kwargs: Any) -> list[Entry]:
        return list(self.store.scan(*args, **kwargs))

    def with_renewer(self, op: Op) -> Any:
        return op.on(self.on(self.store.renewer()))

    def skewed(self, op: Op, seconds: float) -> Any:
        with _skewed(seconds):
            return op.on(self)

    def race(self, flows: Sequence[Flow[Any]]) -> list[Any]:
        """The results of `flows`, all started at once, each by a store object of its own."""
        start = threading.Barrier(len(flows), timeout=PATIENCE)

        def one(flow: Flow[Any], bench: Any) -> Any:
            try:
                start.wait()
                return drive(flow, bench)
            finally:
                # Connections of a thread are closed with it, and not in the next clause.
                if bench.store is not self.store:
                    bench.store.close()

        with ThreadPoolExecutor(len(flows)) as threads:
            racers = [threads.submit(one, flow, self.on(self.others())) for flow in flows]
            return [racer.exception(PATIENCE) or racer.result() for racer in racers]


class AsyncBench(Bench[AsyncStore]):
    """Waits by awaiting; races in tasks."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def scan(self, *args: Any, **kwargs: Any) -> list[Entry]:
        entries: AsyncIterator[Entry] = self.store.scan(*args, **kwargs)
        return [entry async for entry in entries]

    async def with_renewer(self, op: Op) -> Any:
        renewer = self.store.renewer()

        def never(*_: object) -> Any:
            raise NotImplementedError

        # A renewer is sync, and used from a thread.
        return await asyncio.to_thread(op.on, SyncBench(renewer, never, never))

    async def skewed(self, op: Op, seconds: float) -> Any:
        with _skewed(seconds, asyncio.get_running_loop()):
            return await op.on(self)

    async def race(self, flows: Sequence[Flow[Any]]) -> list[Any]:
        """See `SyncBench.race`."""

        async def one(flow: Flow[Any], bench: Any) -> Any:
            try:
                return await adrive(flow, bench)
            finally:
                if bench.store is not self.store:
                    await bench.store.close()

        racers = [one(flow, self.on(self.others())) for flow in flows]
        gathered = asyncio.gather(*racers, return_exceptions=True)
        return list(await asyncio.wait_for(gathered, PATIENCE))


@contextlib.contextmanager
def _skewed(seconds: float, loop: asyncio.AbstractEventLoop | None = None) -> Iterator[None]:
    """Have this process's clocks be off by `seconds`, but for that of the event loop."""
    nanos = int(seconds * 1e9)
    with contextlib.ExitStack() as stack:
        if loop is not None:
            # A loop of another make keeps time in its own way, and is not affected.
            with contextlib.suppress(AttributeError, TypeError):
                stack.enter_context(mock.patch.object(loop, "time", time.monotonic))
        for name, by in (
            ("time", seconds),
            ("monotonic", seconds),
            ("time_ns", nanos),
            ("monotonic_ns", nanos),
        ):
            stack.enter_context(mock.patch.object(time, name, _late(getattr(time, name), by)))
        yield


def _late(clock: Callable[[], Any], by: Any) -> Callable[[], Any]:
    return lambda: clock() + by
