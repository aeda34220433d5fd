"""Two loops that perform the operations of a flow: the only place where sync and async
differ."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import TypeVar

from remit_gates._ops import Flow, Port, Swap


T = TypeVar("T")


def drive(flow: Flow[T], port: Port) -> T:
    """Run `flow` to its end on a sync port; an operation's error is raised inside it."""
    try:
        op = next(flow)
        while True:
            try:
                result = op.on(port)
            except BaseException as error:  # noqa: BLE001 -- it is the flow's to catch
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()


async def adrive(flow: Flow[T], port: Port) -> T:
    """Run `flow` to its end on an async port, whose results may be awaitable."""
    try:
        op = next(flow)
        cancelled = False
        while True:
            try:
                result = op.on(port)
                if inspect.isawaitable(result):
                    whole = cancelled or isinstance(op, Swap)
                    result = await (_whole(result, cancelled) if whole else result)
            except BaseException as error:  # noqa: BLE001 -- it is the flow's to catch
                cancelled = cancelled or isinstance(error, asyncio.CancelledError)
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()


async def _whole(operation: Awaitable[T], again: bool) -> T:
    """The result of `operation`, which no cancellation cuts short.

    A cancellation is raised when the result is known: the flow then finds the claim where
    the swap left it, and takes it back; and what it does for that, `again`, is not cut
    short either, though some frameworks cancel a task until it ends.
    """
    task = asyncio.ensure_future(operation)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None or again:
        return task.result()
    _ = task.cancelled() or task.exception()  # marks an error as seen
    raise cancelled
