"""Waiting for what nothing tells but looking again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final


PATIENCE: Final = 60.0
"""Seconds after which something that must happen has not."""

POLL: Final = 0.005
"""Seconds between two looks."""


def until(condition: Callable[[], Any], what: str = "it", patience: float = PATIENCE) -> Any:
    """What `condition` returns, once that is true.

    Raises:
        TimeoutError: It never was.
    """
    end = time.monotonic() + patience
    while not (result := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {patience:g} s in vain for: {what}")
        time.sleep(POLL)
    return result
