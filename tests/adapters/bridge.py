"""The async face of a sync saver, by way of threads: what a suite of async tests can call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver


NAMES = (
    "get_tuple",
    "put",
    "put_writes",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
)


def bridged(saver: Any) -> Any:
    """`saver` with async methods for what its type can do, and for nothing else."""
    body: dict[str, Any] = {"alist": _list}
    for name in NAMES:
        if getattr(type(saver), name, None) is not getattr(BaseCheckpointSaver, name, None):
            body[f"a{name}"] = _method(name)
    made: Any = type("Bridged", (BaseCheckpointSaver,), body)(serde=saver.serde)
    made.inner = saver
    return made


def _method(name: str) -> Any:
    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(getattr(self.inner, name), *args, **kwargs)

    return method


async def _list(self: Any, config: Any, **options: Any) -> AsyncIterator[Any]:
    for found in await asyncio.to_thread(lambda: list(self.inner.list(config, **options))):
        yield found
