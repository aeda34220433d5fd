"""What a run leaves behind for the garbage collector, which comes late, and not at all where a
service has switched it off: whatever lies about until then may hold all of the run's state."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(kind: type) -> Iterator[Callable[[], int]]:
    """Tells how many objects of `kind` have come and not gone, while nothing is collected."""

    def count() -> int:
        # The type, since the class of a proxy is another's.
        return sum(issubclass(type(thing), kind) for thing in gc.get_objects())

    gc.collect()
    before = count()
    gc.disable()
    try:
        yield lambda: count() - before
    finally:
        gc.enable()
