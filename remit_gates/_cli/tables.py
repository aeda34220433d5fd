"""Rows for a reader. On a terminal rich lays them out, if it is installed; everywhere else
they are plain text, whole and unwrapped."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from remit_gates._cli.values import clean


COLOURS: Final[Mapping[str, str]] = {
    "running": "green",
    "abandoned": "bold red",
    "failed": "red",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
}
"""What a cell that is nothing but such a word looks like on a terminal."""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` under `heads`."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if not (sys.stdout.isatty() and _rich(heads, cells)):
        _plain(heads, cells)


def _plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [list(heads), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def _rich(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether rich was there to print it."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    laid = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        laid.add_column(head, overflow="fold")
    for row in rows:
        # As text and not as markup: a name may hold brackets.
        laid.add_row(*(Text(cell, COLOURS.get(cell, "")) for cell in row))
    Console().print(laid)
    return True
