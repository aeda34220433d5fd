"""The lock file of a `FileStatePersistence` whose holder was killed goes with its claim.

Nothing in the file tells who holds it, so that it is removed only by whoever took over the
claim of a dead holder, after the same lock has stood for as long as pydantic-graph waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic_graph.persistence.file import FileStatePersistence

from remit_gates._claim import ActiveClaim


T = TypeVar("T")


async def unlocked(inner: Any, claim: ActiveClaim, call: Callable[[], Awaitable[T]]) -> T:
    """The result of `call`, which needs the lock of `inner`."""
    file = _lock_of(inner)
    if file is None or claim.passage.replaced is None:
        return await call()
    before = await asyncio.to_thread(_read, file)
    try:
        return await call()
    except (TimeoutError, asyncio.TimeoutError):
        if before is None or await asyncio.to_thread(_read, file) != before:
            raise
    await asyncio.to_thread(file.unlink, missing_ok=True)
    return await call()


def _lock_of(inner: Any) -> Path | None:
    if not isinstance(inner, FileStatePersistence):
        return None
    return inner.json_file.with_name(f"{inner.json_file.name}.pydantic-graph-persistence-lock")


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
