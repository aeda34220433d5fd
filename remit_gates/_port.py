"""The operations of a flow are performed here on a store of either colour, by the clock and the
process table of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from remit_gates._liveness import known_dead
from remit_gates._model import Holder, Record, RunKey
from remit_gates.errors import SetupRequired, StoreUnavailable
from remit_gates.stores import AsyncStore, Store
from remit_gates.stores._threaded import at_once


class StorePort:
    """The operations of a flow, on a store of either colour. What an async store can do at once
    is done here and now: a task or a thread for it would cost more than it does."""

    def __init__(
        self, store: Store | AsyncStore, sleep: Callable[[float], Any] = time.sleep
    ) -> None:
        self.store = store
        self._sleep = sleep

    def read(self, run: RunKey) -> Any:
        return self._soonest("read", False, run)

    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> Any:
        return self._soonest("swap", durable, run, expected, record, lease, durable)

    def renew(self, run: RunKey, token: int, lease: float) -> Any:
        return self.store.renew(run, token, lease)

    def load(self) -> Any:
        """Nothing: a framework's adapter splices its own load in."""

    def dead(self, holder: Holder) -> bool:
        return known_dead(holder)

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> Any:
        return self._sleep(seconds)

    def _soonest(self, name: str, durable: bool, *args: Any) -> Any:
        quick = at_once(self.store, durable=durable)
        if quick is not None:
            with suppress(StoreUnavailable, SetupRequired):
                return getattr(quick, name)(*args)
        return getattr(self.store, name)(*args)
