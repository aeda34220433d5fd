"""Two loops that perform the operations of a flow: the only place where sync and async
differ."""

from __future__ import annotations

import inspect
from typing import TypeVar

from remit_gates._ops import Flow, Port


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
                    result = await result
            except BaseException as error:
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()
