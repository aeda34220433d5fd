"""What a scene must come to, what it came to, and whether the two agree: values and pure
functions, so that the verdict of the demo can be put to the test without a demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal


COLUMNS: Final = ("stock", "gated")


@dataclass(frozen=True, slots=True)
class Scene:
    """One way in which deliveries go wrong, and what is right.

    Attributes:
        name: One word for it.
        title: One line for it.
        callers: How many calls there are.
        winner: The caller who must be served; None where any one may be.
        effects: How often each effect is to fire.
        waiting: What the run asks afterwards.
    """

    name: str
    title: str
    callers: int
    winner: int | None
    effects: Mapping[str, int]
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """What became of one caller.

    Attributes:
        caller: Its number.
        state: What it got.
        nodes: The nodes that ran for it.
        kind: The type of the error that it got.
        message: That error's message.
        reason: For a refusal, its reason.
        http_status: Likewise, the status of an HTTP answer.
        retry_after: Likewise, the seconds after which to ask again.
        served: Likewise, the caller who was served instead.
    """

    caller: int
    state: Literal["served", "refused", "failed"]
    nodes: tuple[str, ...] = ()
    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    http_status: int | None = None
    retry_after: float | None = None
    served: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What one scene came to in one column."""

    effects: Mapping[str, int]
    calls: tuple[Call, ...]
    waiting: tuple[str, ...]

    def by_state(self, state: Literal["served", "refused", "failed"]) -> list[Call]:
        """The calls that ended in `state`."""
        return [call for call in self.calls if call.state == state]


@dataclass(frozen=True, slots=True)
class Result:
    """One scene in both columns."""

    scene: Scene
    columns: Mapping[str, Figures]


def faults(results: Sequence[Result], column: str) -> list[str]:
    """All that is not right in `column`, a sentence each. Nothing played is not right."""
    found = [] if results else ["no scene was played"]
    for result in results:
        figures = result.columns.get(column)
        each = ["was not played"] if figures is None else _faults(result.scene, figures)
        found += [f"{result.scene.name}: {fault}" for fault in each]
    return found


def _faults(scene: Scene, figures: Figures) -> list[str]:
    found = []
    for effect in sorted({*scene.effects, *figures.effects}):
        due, fired = scene.effects.get(effect, 0), figures.effects.get(effect, 0)
        if due != fired:
            found.append(f"{effect!r} fired {times(fired)}, not {times(due)}")
    if {call.caller for call in figures.calls} != set(range(1, scene.callers + 1)):
        found.append(f"{len(figures.calls)} of {scene.callers} callers were heard of")
    served = [call.caller for call in figures.by_state("served")]
    if len(served) != 1 or scene.winner not in (None, *served):
        wanted = "one caller" if scene.winner is None else f"caller {scene.winner}"
        found.append(f"served were {served or 'none'}, not {wanted}")
    found += [
        f"caller {call.caller} got {call.kind} and no refusal: {call.message}"
        for call in figures.by_state("failed")
    ]
    for call in figures.by_state("refused"):
        if call.nodes:
            found.append(f"{', '.join(call.nodes)} ran for refused caller {call.caller}")
        if not (call.kind and call.reason):
            found.append(f"caller {call.caller} was refused without a reason")
    if scene.waiting != figures.waiting:
        found.append(f"the run asks {figures.waiting or 'nothing'}, not {scene.waiting}")
    return found


def surplus(results: Sequence[Result], column: str) -> int:
    """How many effects fired in `column` that nobody had approved."""
    return sum(
        max(0, fired - result.scene.effects.get(effect, 0))
        for result in results
        for effect, fired in result.columns[column].effects.items()
    )


def verdict(results: Sequence[Result]) -> str:
    """The demo in one line."""
    wrong = faults(results, "gated")
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
        return f"WRONG: gated, {wrong[0]}{more}"
    return (
        "RIGHT: gated, each approved effect fired once and nothing else did;"
        f" stock fired {surplus(results, 'stock')} too many."
    )


def times(count: int) -> str:
    """`count` in words."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
