"""What commands that run for a while share: how they end, and whether their output is painted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO


@contextmanager
def terminable() -> Iterator[None]:
    """Unwind on SIGTERM as on Ctrl-C, so that processes, servers and files go in that case too."""

    def unwind(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def coloured(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that wants colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
