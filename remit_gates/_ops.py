"""The operations that a flow of the protocol yields, and what performs them.

This is the whole of what the protocol asks of the world: a store, the framework's own
load, a clock, a sleep, and a look at a process table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from remit_gates._model import Holder, Record, RunKey


class Port(Protocol):
    """What a driver performs operations on. What an async port returns may be awaited."""

    def read(self, run: RunKey) -> Any: ...
    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> Any: ...
    def renew(self, run: RunKey, token: int, lease: float) -> Any: ...
    def load(self) -> Any: ...
    def dead(self, holder: Holder) -> Any: ...
    def now(self) -> Any: ...
    def sleep(self, seconds: float) -> Any: ...


@dataclass(frozen=True, slots=True)
class Read:
    """Read the record of a run. Result: a `Snapshot`."""

    run: RunKey

    def on(self, port: Port) -> Any:
        return port.read(self.run)


@dataclass(frozen=True, slots=True)
class Swap:
    """Replace the record if its version is still `expected`. Result: the new version,
    or None when it was not."""

    run: RunKey
    expected: int | None
    record: Record
    lease: float | None
    durable: bool

    def on(self, port: Port) -> Any:
        return port.swap(self.run, self.expected, self.record, self.lease, self.durable)


@dataclass(frozen=True, slots=True)
class Renew:
    """Extend the unexpired lease of the claim with `token`. Result: whether it was."""

    run: RunKey
    token: int
    lease: float

    def on(self, port: Port) -> Any:
        return port.renew(self.run, self.token, self.lease)


@dataclass(frozen=True, slots=True)
class Load:
    """Load what is parked through the framework's own persistence. Result: the
    adapter's own."""

    def on(self, port: Port) -> Any:
        return port.load()


@dataclass(frozen=True, slots=True)
class Dead:
    """Look whether a holder is known to be dead. Result: whether it is."""

    holder: Holder

    def on(self, port: Port) -> Any:
        return port.dead(self.holder)


@dataclass(frozen=True, slots=True)
class Now:
    """Read the driver's monotonic clock. Result: seconds."""

    def on(self, port: Port) -> Any:
        return port.now()


@dataclass(frozen=True, slots=True)
class Sleep:
    """Sleep. Result: None."""

    seconds: float

    def on(self, port: Port) -> Any:
        return port.sleep(self.seconds)


class Op(Protocol):
    """One operation; an adapter may add its own."""

    def on(self, port: Any) -> Any:
        """Perform it on `port`."""


T = TypeVar("T")
Flow = Generator[Op, Any, T]


def splice(flow: Flow[T], load: Callable[[], Flow[Any]]) -> Flow[T]:
    """`flow`, with each of its `Load`s done by the flow that `load` makes."""
    op = next(flow, None)
    try:
        while op is not None:
            try:
                result = (yield from load()) if isinstance(op, Load) else (yield op)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 -- it is the flow's to catch
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()
    raise AssertionError("a flow that ends at once has nothing to load")
