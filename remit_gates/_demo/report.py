"""The demo's figures for a reader: plain text in fewer than 100 columns, or JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final, TextIO

from remit_gates._console import coloured
from remit_gates._demo.figures import (
    COLUMNS,
    Call,
    Figures,
    Result,
    Scene,
    faults,
    times,
    verdict,
)


LABEL: Final = 46
CELL: Final = 25


class Paint:
    """Colours for a terminal that wants them, and nothing at all for anything else."""

    def __init__(self, stream: TextIO) -> None:
        self.on = coloured(stream)

    def __call__(self, text: str, right: bool) -> str:
        return f"\x1b[{32 if right else 31}m{text}\x1b[0m" if self.on else text

    def strong(self, text: str) -> str:
        """`text` in bold."""
        return f"\x1b[1m{text}\x1b[0m" if self.on else text


def progress(scene: Scene, column: str, figures: Figures) -> str:
    """One line when a scene is over."""
    effects = ", ".join(
        f"{effect} {times(figures.effects.get(effect, 0))}" for effect in _charges(scene)
    )
    served, refused = len(figures.by_state("served")), len(figures.by_state("refused"))
    return f"{column}  {scene.name}: {effects}; {served} served, {refused} refused"


def text(results: Sequence[Result], about: str, paint: Paint) -> str:
    """The table, what the callers were told, and the verdict."""
    heads = "".join(f"{column:<{CELL}}" for column in COLUMNS).rstrip()
    lines = [about, "", " " * LABEL + paint.strong(heads)]
    for number, result in enumerate(results, 1):
        lines += ["", paint.strong(f"{number}. {result.scene.title}")]
        lines += _rows(result, paint)
    lines += ["", paint.strong("What the refused callers were told")]
    told = [line for result in results for line in _told(result)]
    lines += told or ["   nobody was refused"]
    wrong = faults(results, "gated")
    if wrong[1:]:
        lines += ["", paint.strong("What is wrong in the gated column")]
        lines += [f"   {paint(fault, False)}" for fault in wrong]
    lines += ["", paint(verdict(results), not wrong)]
    return "\n".join(lines)


def _rows(result: Result, paint: Paint) -> Iterator[str]:
    scene, columns = result.scene, result.columns
    for effect, due in scene.effects.items():
        fired = {name: figures.effects.get(effect, 0) for name, figures in columns.items()}
        cells = [(times(fired[name]), fired[name] == due) for name in COLUMNS]
        yield _row(f"{effect} fired", cells, paint)
    yield _row("served", [_served(scene, columns[name]) for name in COLUMNS], paint)
    yield _row("refused", [_refused(scene, columns[name]) for name in COLUMNS], paint)
    if any(columns[name].by_state("failed") for name in COLUMNS):
        yield _row("failed", [_failed(columns[name]) for name in COLUMNS], paint)
    if scene.waiting:
        asks = [columns[name].waiting for name in COLUMNS]
        cells = [(", ".join(ask) or "nothing", ask == scene.waiting) for ask in asks]
        yield _row("the run asks now", cells, paint)


def _row(label: str, cells: Sequence[tuple[str, bool]], paint: Paint) -> str:
    padded = "".join(paint(cell, right) + " " * max(1, CELL - len(cell)) for cell, right in cells)
    return f"   {label:<{LABEL - 3}}{padded}".rstrip()


def _served(scene: Scene, figures: Figures) -> tuple[str, bool]:
    served = [call.caller for call in figures.by_state("served")]
    return _callers(served), len(served) == 1 and scene.winner in (None, *served)


def _refused(scene: Scene, figures: Figures) -> tuple[str, bool]:
    refused = figures.by_state("refused")
    clean = not any(call.nodes for call in refused)
    return str(len(refused) or "none"), len(refused) == scene.callers - 1 and clean


def _failed(figures: Figures) -> tuple[str, bool]:
    kinds = sorted({call.kind or "?" for call in figures.by_state("failed")})
    failed = figures.by_state("failed")
    return (f"{len(failed)}: {', '.join(kinds)}" if failed else "none"), not failed


def _told(result: Result) -> Iterator[str]:
    """A line for each thing that was said, in the column in which it was."""
    for name in COLUMNS:
        refused = result.columns[name].by_state("refused")
        same: dict[str, list[int]] = {}
        for call in refused:
            same.setdefault(_short(call), []).append(call.caller)
        for said, callers in same.items():
            yield f"   {result.scene.name}, {_callers(callers)}: {said}"


def _short(call: Call) -> str:
    who = "somebody else" if call.served is None else f"caller {call.served}"
    say = "holds the run" if call.kind == "InProgress" else "had answered before"
    again = "" if call.retry_after is None else f"; ask again within {call.retry_after:.0f} s"
    return f"{call.kind} ({call.http_status}): {who} {say}{again}"


def _callers(numbers: Sequence[int]) -> str:
    """`numbers` with their runs folded: callers 1, 3-5."""
    if not numbers:
        return "nobody"
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    folded = ", ".join("-".join(str(end) for end in span) for span in spans)
    return f"caller{'s' if numbers[1:] else ''} {folded}"


def _charges(scene: Scene) -> list[str]:
    return [effect for effect in scene.effects if effect.startswith("charge")]


def document(results: Sequence[Result], about: Mapping[str, object]) -> str:
    """The same for a program: one JSON object."""
    wrong = faults(results, "gated")
    body = {
        **about,
        "scenes": [
            {
                "name": result.scene.name,
                "title": result.scene.title,
                "expected": dict(result.scene.effects),
                **{name: _column(result.columns[name]) for name in COLUMNS},
            }
            for result in results
        ],
        "right": not wrong,
        "faults": wrong,
        "verdict": verdict(results),
    }
    return json.dumps(body, indent=2)


def _column(figures: Figures) -> dict[str, object]:
    states = Counter(call.state for call in figures.calls)
    return {
        "effects": dict(figures.effects),
        **{state: states[state] for state in ("served", "refused", "failed")},
        "waiting": list(figures.waiting),
        "calls": [asdict(call) for call in figures.calls],
    }
