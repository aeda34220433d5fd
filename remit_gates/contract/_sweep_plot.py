"""A sweep as one picture: a panel a backend and column, a square a cell.

Colour and figure are effects per delivered answer, so that one over the number of deliveries
is right and 1.0 is saturation. The picture is SVG that needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from remit_gates.contract._sweep import Raced


WIDE: Final = 74
HIGH: Final = 44
LEFT: Final = 64
HEAD: Final = 66
GAP: Final = 46
FOOT: Final = 54

_KEY: Final = (
    "Effects per delivered answer; below it the most effects that one question had, and of how"
    " many deliveries."
)
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#1c2430}"
    ".title{font-size:17px;font-weight:600}.panel{font-size:14px;font-weight:600}"
    ".soft{fill:#5a6572}.figure{text-anchor:middle;font-size:14px}"
    ".small{text-anchor:middle;font-size:10px}.head{text-anchor:middle}.side{text-anchor:end}"
)


def plot(raced: Sequence[Raced], title: str) -> str:
    """The picture."""
    backends = list(dict.fromkeys(each.backend for each in raced))
    columns = list(dict.fromkeys(each.column for each in raced))
    racers = sorted({each.racers for each in raced})
    jitters = sorted({each.jitter for each in raced})
    panel_wide = LEFT + WIDE * len(racers)
    panel_high = GAP + 20 + HIGH * len(jitters)
    wide = max(700, (panel_wide + 28) * len(columns) + 12)
    high = HEAD + panel_high * len(backends) + FOOT
    size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
    label = escape(title, quote=True)
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{wide}" height="{high}" fill="#fdfdfb"/>',
            f'<text class="title" x="16" y="28">{escape(title)}</text>',
            f'<text class="soft" x="16" y="50">{_KEY}</text>',
            *(
                line
                for row, backend in enumerate(backends)
                for column_number, column in enumerate(columns)
                for line in _panel(
                    [r for r in raced if (r.backend, r.column) == (backend, column)],
                    f"{backend}, {column}",
                    (16 + column_number * (panel_wide + 28), HEAD + row * panel_high),
                    (racers, jitters),
                )
            ),
            *_legend(16, high - 34),
            "</svg>\n",
        )
    )


def _panel(
    raced: Sequence[Raced],
    name: str,
    at: tuple[int, int],
    axes: tuple[Sequence[int], Sequence[int]],
) -> Iterator[str]:
    x, y = at
    racers, jitters = axes
    yield f'<text class="panel" x="{x}" y="{y + 20}">{escape(name)}</text>'
    top = y + GAP
    for number, k in enumerate(racers):
        middle = x + LEFT + WIDE * number + WIDE // 2
        yield f'<text class="head soft" x="{middle}" y="{top - 7}">{k} racers</text>'
    for number, jitter in enumerate(jitters):
        middle = top + HIGH * number + HIGH // 2 + 4
        yield f'<text class="side soft" x="{x + LEFT - 8}" y="{middle}">{jitter} ms</text>'
    for each in raced:
        left = x + LEFT + WIDE * racers.index(each.racers)
        yield from _square(each, left, top + HIGH * jitters.index(each.jitter))


def _square(raced: Raced, x: int, y: int) -> Iterator[str]:
    told = ", ".join(f"{count} {name}" for name, count in sorted(raced.outcomes.items()))
    errors = "; ".join(f"{count} {name}" for name, count in sorted(raced.errors.items()))
    colour = "#fae6a8" if raced.failed else _colour(raced)
    title = raced.failed or f"{told}. {errors}".strip()
    yield (
        f'<g class="cell"><title>{escape(title)}</title>'
        f'<rect x="{x + 1}" y="{y + 1}" width="{WIDE - 2}" height="{HIGH - 2}" rx="3"'
        f' fill="{colour}"/>'
    )
    figure = "?" if raced.failed else f"{raced.per_delivery:.2f}"
    yield f'<text class="figure" x="{x + WIDE // 2}" y="{y + 20}">{figure}</text>'
    if raced.effects:
        most = f"{max(raced.effects)} of {raced.racers}"
        yield f'<text class="small" x="{x + WIDE // 2}" y="{y + 35}">{most}</text>'
    yield "</g>"


def _colour(raced: Raced) -> str:
    """Green where every effect fired once; else from pale to red, as excess effects go."""
    if raced.once:
        return "#bfe5c7"
    least = 1 / raced.racers
    share = max(0.0, min(1.0, (raced.per_delivery - least) / (1 - least)))
    pale, full = (0xFB, 0xE3, 0xD6), (0xE8, 0x70, 0x5A)
    return "#" + "".join(
        f"{round(a + (b - a) * share):02x}" for a, b in zip(pale, full, strict=True)
    )


def _legend(x: int, y: int) -> Iterator[str]:
    for colour, text in (
        ("#bfe5c7", "exactly once, every time"),
        ("#e8705a", "once for every delivery"),
        ("#fae6a8", "could not be measured"),
    ):
        yield f'<rect x="{x}" y="{y}" width="16" height="16" rx="3" fill="{colour}"/>'
        yield f'<text x="{x + 22}" y="{y + 13}">{text}</text>'
        x += 196
