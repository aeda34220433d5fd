"""In whose turn a measurement is made, so that whatever else the machine does falls on all alike,
and how long it takes.

Each has a block of turns before the next one comes, as a process does one kind of thing for long:
in single turns each would find the caches of the processor full of the others' code, which no
service that gates its runs does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final


BLOCK: Final = 25
"""Turns in a row. `overhead.py --block 1` measures in single turns."""


def turns(
    names: Iterable[str], count: int, begin: Callable[[], object], block: int = BLOCK
) -> Iterator[tuple[str, int]]:
    """A name and a number for each turn, in whole blocks, at least `count` turns each. Those
    that warm up have numbers below zero.

    Args:
        names: Who takes turns.
        count: How many each is to have.
        begin: Called when all have warmed up, by a block of turns each.
        block: Turns in a row.
    """
    order = sorted(names)
    # Whole blocks for everyone, and as often first as last.
    for start in range(-block, count, block):
        if start == 0:
            begin()
        for name in order:
            for turn in range(block):
                yield name, start + turn
        order.reverse()


@contextmanager
def timed(times: dict[str, list[float]], name: str) -> Iterator[None]:
    """Notes in `times` how many seconds the block took, however it was left."""
    start = time.perf_counter()
    try:
        yield
    finally:
        times[name].append(time.perf_counter() - start)
