"""A scene as a time line: a bar an order, a mark where the ledger has an entry."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from remit_gates.contract._model import Call, Mark, Scene


LEFT: Final = 110
WIDTH: Final = 700
ROW: Final = 24
TOP: Final = 14


def drawing(scene: Scene) -> str:
    """The time line of `scene`, as SVG."""
    every = [call for call in scene.calls if call.verb != "state"]
    # What comes before the deliveries would only press them together.
    shown = [call for call in every if call.verb != "start"] or every
    zero = min((call.began for call in shown), default=0.0)
    rows = {call.number: row for row, call in enumerate(shown)}
    end = max((call.ended or call.began for call in shown), default=0.0) - zero or 1.0
    height = TOP + ROW * len(shown) + 22
    return "".join(
        (
            f'<div class="wide"><svg class="race" viewBox="0 0 {WIDTH} {height}"',
            f' role="img" aria-label="{escape(_told(scene), quote=True)}">',
            *_axis(end, height),
            *(line for call in shown for line in _bar(call, rows[call.number], zero, end)),
            *(line for mark in scene.marks for line in _mark(mark, rows, zero, end)),
            "</svg></div>",
        )
    )


def _x(at: float, end: float) -> float:
    return round(LEFT + (WIDTH - LEFT - 40) * max(0.0, min(at, end)) / end, 1)


def _axis(end: float, height: int) -> Iterator[str]:
    for part in range(5):
        at = end * part / 4
        x = _x(at, end)
        yield f'<line class="axis" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{height - 18}"/>'
        yield f'<text class="tick" x="{x}" y="{height - 4}">{at * 1000:.0f} ms</text>'


def _bar(call: Call, row: int, zero: float, end: float) -> Iterator[str]:
    y = TOP + ROW * row
    start = _x(call.began - zero, end)
    stop = _x((call.ended or zero + end) - zero, end)
    label = " ".join(filter(None, (f"{call.number}.", call.verb, call.details.get("value"))))
    yield f'<text x="0" y="{y + 12}">{escape(label)}</text>'
    yield (
        f'<rect class="bar {escape(call.outcome)}" x="{start}" y="{y + 2}"'
        f' width="{max(2.0, stop - start):.1f}" height="13" rx="2">'
        f"<title>{escape(f'{call.outcome}: {call.said}')}</title></rect>"
    )


def _mark(mark: Mark, rows: dict[int, int], zero: float, end: float) -> Iterator[str]:
    if mark.order not in rows or mark.kind == "ran":
        return
    x, y = _x(mark.at - zero, end), TOP + ROW * rows[mark.order] + 8.5
    title = f"<title>{escape(f'{mark.kind} {mark.step} ({mark.value})')}</title>"
    if mark.kind == "effect":
        yield f'<circle class="effect" cx="{x}" cy="{y}" r="5">{title}</circle>'
    else:
        yield (
            f'<rect class="{escape(mark.kind)}" x="{x - 3.5}" y="{y - 3.5}" width="7" height="7"'
            f' transform="rotate(45 {x} {y})">{title}</rect>'
        )
    yield f'<text class="step" x="{x + 6}" y="{y - 3}">{escape(mark.step)}</text>'


def _told(scene: Scene) -> str:
    return f"Time line of: {scene.title}. " + " ".join(scene.saw)
