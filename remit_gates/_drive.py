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
            except BaseException as error:
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
        while True:
            try:
                result = op.on(port)
                if inspect.isawaitable(result):
                    result = await (_whole(result) if isinstance(op, Swap) else result)
            except BaseException as error:
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()


async def _whole(swap: Awaitable[T]) -> T:
    """The result of `swap`. A cancellation is held back until it is known: the flow then
    finds the claim where the swap left it, and can take it back."""
    task = asyncio.ensure_future(swap)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        _ = task.cancelled() or task.exception()  # marks an error as seen
        raise
