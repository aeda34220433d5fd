"""What a measurement comes to: values that go to JSON and back without loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal


Verdict = Literal["holds", "violated", "not applicable", "not measured"]

PROPERTIES: Final[Mapping[str, str]] = {
    "PC": "prefix continuation",
    "EO": "effect exactly-once",
    "FD": "fork determinism",
    "CV": "checkpoint validity",
    "CO-c": "consume-once: consumptions",
    "CO-e": "consume-once: effects",
    "RD": "recovery determinism",
    "FI": "fork intent",
    "LV": "liveness",
}
"""The six properties, with consume-once in its two halves, and the two obligations."""


@dataclass(slots=True)
class Call:
    """One delivery or other verb, and what it came to. Times are seconds in the scene."""

    number: int
    verb: str
    began: float
    ended: float | None = None
    pid: int | None = None
    outcome: str = "running"
    said: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Mark:
    """One entry of the ledger: a step ran, its effect fired, an answer was taken, a hold."""

    kind: str
    step: str
    value: str | None
    order: int
    at: float


@dataclass(slots=True)
class Scene:
    """One thing that was run, and what was seen.

    Attributes:
        title: What was run, in a line.
        program: The stages of the run.
        calls: Each order, in the order in which they were sent.
        marks: The ledger.
        saw: What was counted, in a line a count.
        faults: The figure of each violation, by property; none where all holds.
        judged: The properties that this scene says something about.
        skipped: Why the scene was not run; None if it was.
        failed: Why it could not be carried out, through no fault of the framework.
    """

    title: str
    program: str
    calls: list[Call] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    saw: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    judged: list[str] = field(default_factory=list)
    skipped: str | None = None
    failed: str | None = None


@dataclass(slots=True)
class Judgement:
    """The verdict on one property, with the scenes that it rests on, by their indices."""

    verdict: Verdict
    figure: str = ""
    scenes: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.verdict} ({self.figure})" if self.figure else self.verdict


@dataclass(slots=True)
class Profile:
    """What one framework, version and backend does, in one column."""

    framework: str
    version: str
    backend: str
    column: str
    python: str = ""
    date: str = ""
    seconds: float = 0.0
    racers: int = 0
    tries: int = 0
    packages: dict[str, str] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    scenes: list[Scene] = field(default_factory=list)

    def violated(self) -> set[str]:
        """The properties that do not hold."""
        return {name for name, each in self.judgements.items() if each.verdict == "violated"}

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Profile:
        """The profile that `document` was made of."""
        made = cls(**document)
        made.judgements = {name: Judgement(**each) for name, each in document["judgements"].items()}
        made.scenes = [_scene(each) for each in document["scenes"]]
        return made


def telling(calls: Sequence[Call]) -> list[Call]:
    """`calls` without the looks that only waited for the next one, and without the paths by
    which a hold is let go, which mean nothing once it was."""
    for call in calls:
        for fault in call.details.get("faults", ()):
            fault.pop("until", None)
    return [
        call
        for number, call in enumerate(calls, 1)
        if {call.verb, *(after.verb for after in calls[number : number + 1])} != {"state"}
        or number == len(calls)
    ]


def unmeasured(framework: str, version: str, backend: str, column: str, why: str) -> Profile:
    """The profile of what could not even be started."""
    judgements = {name: Judgement("not measured", why) for name in PROPERTIES}
    return Profile(framework, version, backend, column, judgements=judgements)


def judged(name: str, scenes: Iterable[Scene]) -> Judgement:
    """The verdict on the property `name` by all the scenes that say something about it."""
    about = [(number, scene) for number, scene in enumerate(scenes) if name in scene.judged]
    numbers = [number for number, _ in about]
    figures = [scene.faults[name] for _, scene in about if name in scene.faults]
    failed = [scene.failed for _, scene in about if scene.failed]
    played = [scene for _, scene in about if scene.skipped is None]
    if figures:
        # A violation is one, whatever could not be measured besides.
        return Judgement("violated", "; ".join(dict.fromkeys(figures)), numbers)
    if failed:
        return Judgement("not measured", failed[0], numbers)
    if not played:
        whys = dict.fromkeys(scene.skipped or "" for _, scene in about)
        return Judgement("not applicable", "; ".join(whys) or "no scene", numbers)
    return Judgement("holds", "", numbers)


def _scene(document: Mapping[str, Any]) -> Scene:
    made = Scene(**document)
    made.calls = [Call(**each) for each in document["calls"]]
    made.marks = [Mark(**each) for each in document["marks"]]
    return made
