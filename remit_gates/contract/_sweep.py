"""The concurrency sweep: how often one answer's effect fires, by who arrives, when and where.

A cell is a backend, a number of deliveries and how far they arrive apart. Each delivery is a
process of its own; what it was told is read from it and counted, and what fired is read from
the ledger, never from what the processes say.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from remit_gates.contract._line import Line
from remit_gates.contract._order import DriverFailed, Pending
from remit_gates.contract.drivers._kit import ledger


RACERS: Final = (2, 3, 4, 8, 16)
JITTERS: Final = (0, 1, 5, 25)
REPETITIONS: Final = 10
COLUMNS: Final = ("stock", "gated")


@dataclass(frozen=True, slots=True)
class Cell:
    """How a race is run.

    Attributes:
        backend: Where the run is persisted.
        racers: How many deliveries of answers to one pause there are.
        jitter: Each arrives at a random moment of the first so many milliseconds.
    """

    backend: str
    racers: int
    jitter: int

    def __str__(self) -> str:
        return f"{self.backend}/{self.racers}/{self.jitter}"


def cells(backends: Sequence[str]) -> list[Cell]:
    """All cells of a sweep."""
    return [Cell(each, k, ms) for each in backends for k in RACERS for ms in JITTERS]


@dataclass(slots=True)
class Raced:
    """What a cell came to, in one column.

    Attributes:
        backend: As in the cell, with `racers` and `jitter`.
        column: `stock` or `gated`.
        effects: For each repetition, how often the effect behind the question fired.
        later: The same for the effect of the step after that.
        took: For each repetition, how many deliveries took the answer.
        outcomes: How many deliveries were told `ok`, `refused`, `error` or `died`.
        errors: How many were told each error or refusal, by the name of its class.
        failed: Why the cell could not be measured to its end.
    """

    backend: str
    racers: int
    jitter: int
    column: str
    effects: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    took: list[int] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    failed: str = ""

    @property
    def deliveries(self) -> int:
        """How many deliveries there were in all."""
        return self.racers * len(self.effects)

    @property
    def per_delivery(self) -> float:
        """Effects per delivered answer: 1.0 is saturation, one effect for every delivery."""
        return sum(self.effects) / self.deliveries if self.deliveries else 0.0

    @property
    def once(self) -> bool:
        """Whether each effect fired exactly once in every repetition."""
        counts = set(self.effects) | set(self.later) | set(self.took)
        return not self.failed and counts == {1}

    @property
    def saturated(self) -> bool:
        """Whether every delivery fired the effect in every repetition."""
        return not self.failed and set(self.effects) == {self.racers}

    def document(self) -> dict[str, Any]:
        """As JSON has it, with the figures that follow from it."""
        made = asdict(self)
        made["jitter_ms"] = made.pop("jitter")
        return made | {
            "deliveries": self.deliveries,
            "effects_per_delivery": round(self.per_delivery, 4),
            "once": self.once,
            "saturated": self.saturated,
        }


class Place(Protocol):
    """Where the deliveries of a cell come from."""

    def line(self, backend: str, column: str, racer: int) -> Line:
        """Where to give the order of the delivery number `racer`, from 0."""
        ...


def sweep(
    place: Place,
    wanted: Sequence[Cell],
    *,
    repetitions: int = REPETITIONS,
    columns: Sequence[str] = COLUMNS,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Raced]:
    """Race in each of the cells `wanted`; the columns take turns, repetition by repetition.

    Args:
        place: Where deliveries come from.
        wanted: The cells.
        repetitions: Races in a cell and column.
        columns: `stock`, `gated` or both.
        seed: Decides when within the jitter each delivery arrives, the same in every column.
        say: Told of each cell before it begins.
    """
    for number, cell in enumerate(wanted, 1):
        say(f"{cell} ({number} of {len(wanted)})")
        found = {each: Raced(cell.backend, cell.racers, cell.jitter, each) for each in columns}
        for repetition in range(repetitions):
            chance = random.Random(f"{seed}/{cell}/{repetition}")  # noqa: S311 -- no secret
            delays = [chance.uniform(0, cell.jitter) / 1000 for _ in range(cell.racers)]
            for column, raced in found.items():
                if not raced.failed:
                    run = f"sweep-{str(cell).replace('/', '-')}-{column}-{seed}-{repetition}"
                    _race(place, raced, run, delays)
        yield from found.values()


def _race(place: Place, raced: Raced, run: str, delays: Sequence[float]) -> None:
    """One repetition. What cannot be carried out ends the cell, and is no figure."""
    racers: list[Pending] = []
    try:
        line = place.line(raced.backend, raced.column, 0)
        about = {"run": run, "program": "approval", "gated": raced.column == "gated"}
        handle = _parked(line, about)
        for number, delay in enumerate(delays):
            racers.append(
                place.line(raced.backend, raced.column, number).order(
                    "answer",
                    wait=True,
                    value="yes",
                    delivery=f"{run}-{number}",
                    handle=handle,
                    delay=delay,
                    **about,
                )
            )
        for racer in racers:
            racer.ready()
        for racer in racers:
            racer.go()
        replies = [racer.wait() for racer in racers]
        fired = _fired(line, run)
    except DriverFailed as failure:
        raced.failed = str(failure)
        for racer in racers:
            racer.kill()
        return
    raced.effects.append(fired["effect", "b"])
    raced.later.append(fired["effect", "c"])
    raced.took.append(fired["took", "ask"])
    outcomes = Counter(told["outcome"] for told in replies)
    errors = Counter(_error(told) for told in replies if told["outcome"] != "ok")
    raced.outcomes = dict(Counter(raced.outcomes) + outcomes)
    raced.errors = dict(Counter(raced.errors) + errors)


def _parked(line: Line, about: dict[str, Any]) -> Any:
    parked = line.order("start", **about)
    reply = parked.wait()
    if reply["outcome"] != "ok" or reply["value"]["status"] != "parked":
        raise DriverFailed(f"the run did not park: {parked.call.said}")
    return reply["value"]["handle"]


def _fired(line: Line, run: str) -> Counter[tuple[str, str]]:
    path = ledger(line.folder, run)
    entries = [json.loads(each) for each in path.read_text("utf-8").splitlines()]
    path.unlink()
    return Counter((entry["kind"], entry["step"]) for entry in entries)


def _error(told: dict[str, Any]) -> str:
    kind = str(told.get("kind", told["outcome"]))
    # A refusal's message names its run; of the others the first line tells what happened.
    if told["outcome"] != "error":
        return kind
    return f"{kind}: {told.get('message', '')}".partition("\n")[0][:90]
