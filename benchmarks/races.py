"""The cells of tests/races, oftener, gated and as they come: how often an effect fires."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from tests.races.cells import CELLS, RACERS, cell
from tests.races.savers import wrapper
from tests.races.workers import Team, team


SPREADS = (("together", 0.0, 0.0), ("80 ms apart", 0.08, 0.02))
"""Name, seconds from the first arrival to the last, and seconds that a node takes."""


def measure(
    urls: Any, kinds: list[str], wraps: list[str], repetitions: int, folder: Path
) -> list[dict[str, Any]]:
    """One row for each cell, arrival and gate. `urls` makes a fresh database of one of
    `kinds`."""
    rows = []
    with team(folder, RACERS) as racers:
        for kind, who in (one for one in CELLS if one[0] in kinds):
            for arrival, spread, pace in SPREADS:
                for wrap in wraps:
                    row = {"database": kind, "racers": who, "arrival": arrival, "gate": wrap}
                    url = urls(kind)
                    try:
                        found = _raced(who, url, wrap, spread, pace, repetitions, folder, racers)
                    except Exception as error:  # noqa: BLE001  a gate may not support a cell
                        found = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:90]}
                        racers.recover()
                    rows.append(row | found)
                    print(".", end="", flush=True)
    print()
    return rows


def _raced(
    who: str,
    url: str,
    wrap: str,
    spread: float,
    pace: float,
    repetitions: int,
    folder: Path,
    racers: Team,
) -> dict[str, Any]:
    effects, later, served, kinds = [], [], [], set()
    with cell(who, url, wrapper(wrap), folder=folder, team=racers, pace=pace) as racing:
        if who == "processes":
            racers.open(url, wrap=wrap, pace=pace)
        for repetition in range(repetitions):
            run = f"{url.rpartition('/')[2][:40]}-{who}-{spread}-{wrap}-{repetition}"
            racing.park(run)
            verdicts = racing.race(run, spread)
            counts = racing.journal.counts(run)
            effects.append(counts["charge"])
            later.append(counts["notify"])
            served.append(sum(verdict.served for verdict in verdicts))
            kinds |= {verdict.kind for verdict in verdicts if not verdict.served}
    return {
        "repetitions": repetitions,
        "effect": statistics.mean(effects),
        "effect_max": max(effects),
        "next_node": statistics.mean(later),
        "served": statistics.mean(served),
        "wrong": sum(pair != (1, 1) for pair in zip(effects, later, strict=True)),
        "others_got": sorted(kinds),
    }
