"""The async view of a sync store: every call runs elsewhere, or at once if it cannot block."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from types import FunctionType
from typing import ParamSpec, TypeVar

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.stores._calls import PAGE
from remit_gates.stores._protocol import AsyncStore, Entry, Store


P = ParamSpec("P")
T = TypeVar("T")


def at_once(store: object, *, durable: bool = False) -> Store | None:
    """See `ThreadedStore.at_once`; None for a store of any other kind.

    What wraps a store and hands on its attributes is a store of another kind: its own calls
    are the ones to make.
    """
    look = getattr(type(store), "at_once", None)
    return look(store, durable) if isinstance(look, FunctionType) else None


class ThreadedStore(AsyncStore):
    """A sync store for async callers, each call in a worker thread.

    Args:
        store: The store.
        inline: Whether its calls return at once, so that a thread would only cost time.
    """

    def __init__(self, store: Store, *, inline: bool = False) -> None:
        self._store = store
        self._inline = inline
        hurried: Callable[[], Store] | None = getattr(store, "hurried", None)
        self._at_once = store if inline else None if hurried is None else hurried()

    def __repr__(self) -> str:
        return f"<ThreadedStore of {self._store!r}>"

    def at_once(self, durable: bool) -> Store | None:
        """The same records for calls that must not wait, on the event loop's own thread:
        whatever would have to wait raises `StoreUnavailable` or `SetupRequired` there, and has
        changed nothing. None where every call may have to, and where what is `durable` has to."""
        return None if durable and not self._inline else self._at_once

    async def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return await self._call(self._store.read, run)

    async def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        return await self._call(self._store.swap, run, expected, record, lease, durable)

    async def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return await self._call(self._store.renew, run, token, lease)

    async def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return await self._call(self._store.delete, run)

    async def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> AsyncIterator[Entry]:
        """See `Store.scan`."""
        entries = self._store.scan(framework, namespace, after=after, claimed=claimed, idle=idle)
        while page := await self._call(list, itertools.islice(entries, PAGE)):
            for entry in page:
                yield entry

    async def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        return await self._call(self._store.prune, older_than)

    async def setup(self) -> None:
        """See `Store.setup`."""
        await self._call(self._store.setup)

    async def close(self) -> None:
        """See `Store.close`."""
        if self._at_once is not None:
            self._at_once.close()
        await self._call(self._store.close)

    def renewer(self) -> Store:
        """See `Store.renewer`."""
        return self._store.renewer()

    async def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._inline:
            return call(*args, **kwargs)
        return await asyncio.to_thread(call, *args, **kwargs)
