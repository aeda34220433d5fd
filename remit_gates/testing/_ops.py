"""The operations of the kit, beside the protocol's own Read, Swap, Renew and Sleep."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar


T = TypeVar("T")
Clause = Generator[Any, Any, T]


@dataclass(frozen=True, slots=True)
class Delete:
    """Forget a run. Result: whether there was a record."""

    run: Any

    def on(self, bench: Any) -> Any:
        return bench.store.delete(self.run)


@dataclass(frozen=True, slots=True)
class Scan:
    """List records. Result: the entries."""

    framework: str | None = None
    namespace: str | None = None
    after: Any = None
    claimed: bool | None = None
    idle: float | None = None

    def on(self, bench: Any) -> Any:
        return bench.scan(
            self.framework,
            self.namespace,
            after=self.after,
            claimed=self.claimed,
            idle=self.idle,
        )


@dataclass(frozen=True, slots=True)
class Prune:
    """Forget old records. Result: how many."""

    older_than: float

    def on(self, bench: Any) -> Any:
        return bench.store.prune(self.older_than)


@dataclass(frozen=True, slots=True)
class Setup:
    """Set the store up."""

    def on(self, bench: Any) -> Any:
        return bench.store.setup()


@dataclass(frozen=True, slots=True)
class Race:
    """Perform flows at once, each by a store object of its own. Result: their results, or
    errors."""

    flows: tuple[Generator[Any, Any, Any], ...]

    def on(self, bench: Any) -> Any:
        return bench.race(self.flows)


@dataclass(frozen=True, slots=True)
class Other:
    """Perform an operation by another store object over the same records."""

    op: Any

    def on(self, bench: Any) -> Any:
        return self.op.on(bench.on(bench.others()))


@dataclass(frozen=True, slots=True)
class Faulty:
    """Perform an operation by the store with a fault that the harness's method makes."""

    hook: str
    op: Any

    def on(self, bench: Any) -> Any:
        return self.op.on(bench.on(bench.hook(self.hook)))


@dataclass(frozen=True, slots=True)
class Renewing:
    """Perform an operation by the store's renewer."""

    op: Any

    def on(self, bench: Any) -> Any:
        return bench.with_renewer(self.op)


@dataclass(frozen=True, slots=True)
class Skewed:
    """Perform an operation while the clocks of this process are off."""

    op: Any
    seconds: float

    def on(self, bench: Any) -> Any:
        return bench.skewed(self.op, self.seconds)


def only(op: Any) -> Generator[Any, Any, Any]:
    """The flow of nothing but `op`."""
    return (yield op)


def times(count: int, make: Callable[[int], Any]) -> tuple[Generator[Any, Any, Any], ...]:
    """`count` flows of one operation each."""
    return tuple(only(make(index)) for index in range(count))
