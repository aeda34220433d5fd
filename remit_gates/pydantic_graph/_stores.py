"""Stores that were given as URLs are opened once a process: gates are made for each request,
and their connections should not be."""

from __future__ import annotations

import functools
import os
from typing import Any

from remit_gates.stores import AsyncStore, as_async_store


def opened(source: Any) -> AsyncStore:
    """The store that `source` is or points at; see `as_async_store`."""
    return _shared(source, os.getpid()) if isinstance(source, str) else as_async_store(source)


@functools.lru_cache(maxsize=64)
def _shared(url: str, pid: int) -> AsyncStore:
    return as_async_store(url)
