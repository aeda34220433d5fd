"""Calls of a driver as values, so that one flow of them serves both colours of the driver."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar, cast

from remit_gates import _drive
from remit_gates._ops import Flow, Port


T = TypeVar("T")


class Do:
    """Call `function`. Result: what it returns, awaited if need be."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def on(self, port: object) -> Any:
        return self.function(*self.args, **self.kwargs)


Steps = Generator[Do, Any, T]

_NOWHERE: Final = cast(Port, None)


def perform(steps: Steps[T]) -> T:
    """Perform `steps` with a sync driver."""
    return _drive.drive(cast("Flow[T]", steps), _NOWHERE)


async def aperform(steps: Steps[T]) -> T:
    """Perform `steps` with an async driver."""
    return await _drive.adrive(cast("Flow[T]", steps), _NOWHERE)
