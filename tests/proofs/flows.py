"""Production generators as a finite automaton: the same flow, sent the same results, stands
at the same point, so that a point may be numbered, shared and returned to.

A generator cannot be copied. A point therefore keeps one list of results that leads to it,
and is reached again by a replay from the start. Two lists lead to the same point when the
chain of suspended frames is equal: which instruction, and which locals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Any, Final, Literal, NamedTuple

from remit_gates._model import Claim, Delivery, Outcome, Record, RunKey, Snapshot
from remit_gates._ops import Flow, Now, Op, Sleep, Swap
from remit_gates._passage import Passage


RUN: Final = RunKey("proof", "", "run")

CURRENT: Final = 1
"""What the newest version of the record is called. A store never uses one twice, so all
older ones are alike, but for one thing: a flow asks whether what it reads is still what it
read first."""

FIRST: Final = 0
"""What a version is called that is old by now, and is the one that the flow read first."""

LATER: Final = -2
"""What one is called that is old by now, and came after that."""

ANY: Final = -1
"""What a swap expects that must not be conditional. No flow of ours sends it."""

MOOT: Final = frozenset({"_", "now", "poll"})
"""Locals that decide nothing later: a loop counter, a value written before it is read
again, and the length of a sleep."""


class Moving(NamedTuple):
    """What the heartbeat moves in a passage. The deadline counts from now."""

    version: int
    deadline: float


class Held(NamedTuple):
    """What stays the same in a passage."""

    before: Record
    record: Record
    claim: Claim
    replaced: Claim | None
    loaded: Any
    delivery: Delivery

    def passage(self, moving: Moving) -> Passage:
        return Passage(
            run=RUN,
            before=self.before,
            record=self.record,
            claim=self.claim,
            replaced=self.replaced,
            version=moving.version,
            entered=0.0,
            deadline=moving.deadline,
            loaded=self.loaded,
            delivery=self.delivery,
        )


class Thrown(NamedTuple):
    """An operation or a flow that ended in an error."""

    error: type[BaseException]


class Origin(NamedTuple):
    """A production flow and what it is called with."""

    name: Literal["enter", "leave", "renew", "fence"]
    who: int
    held: Held | None = None
    outcome: Outcome | None = None
    applied: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """Where a flow stands, and one way to get there."""

    origin: Origin
    tape: tuple[tuple[Moving | None, Any], ...]
    ops: tuple[Op, ...]

    @property
    def op(self) -> Op:
        return self.ops[-1]


class Step(NamedTuple):
    """What became of a flow that was sent a result: it stands at `point`, or it has ended
    and `value` is what it returned, or the error that it raised."""

    point: int | None
    value: Any
    moving: Moving | None


Build = Callable[[Origin, "Passage | None"], Flow[Any]]


class Flows:
    """The automaton, discovered as it is explored. Without `merged`, two lists of results
    are two points: slower, and it takes nothing about frames on trust."""

    def __init__(self, build: Build, lease: float, *, merged: bool = True) -> None:
        self._build = build
        self._merged = merged
        self._lease = lease
        self._points: list[Point] = []
        self._numbers: dict[Any, int] = {}
        self._steps: dict[Any, Step] = {}
        self._aged: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, point: int) -> Point:
        return self._points[point]

    def start(self, origin: Origin, moving: Moving | None = None) -> Step:
        key = (origin, moving)
        if key not in self._steps:
            self._steps[key] = self._replay(origin, ((moving, None),), ())
        return self._steps[key]

    def send(self, point: int, moving: Moving | None, result: Any) -> Step:
        # The ground makes each snapshot once; to compare them field by field takes long.
        key = (point, moving, id(result) if isinstance(result, Snapshot) else result)
        if key not in self._steps:
            at = self._points[point]
            self._steps[key] = self._replay(at.origin, (*at.tape, (moving, result)), at.ops)
        return self._steps[key]

    def aged(self, point: int, event: Literal["swap", "tick"]) -> int:
        """The same point after another swap landed, or after the clock ticked.

        Versions are only ever compared for being the newest and for being the one that was
        read first, and times with one another; so a flow that was sent older ones is at the same instruction.
        """
        key = (point, event)
        if key not in self._aged:
            at = self._points[point]
            if event == "tick" and at.origin.name == "leave":
                return point  # it only writes the time down
            seen = [entry[1].version for entry in at.tape if isinstance(entry[1], Snapshot)]
            # Of what it read, the newest is newer than the first once the first is old.
            old = LATER if seen and seen[0] == FIRST else FIRST
            rename = functools.partial(self._stale, old) if event == "swap" else self._earlier
            tape = tuple(
                rename(entry, op) for entry, op in zip(at.tape, (None, *at.ops[:-1]), strict=True)
            )
            step = self._replay(at.origin, tape, at.ops[:-1])
            assert step.point is not None
            assert type(self._points[step.point].op) is type(at.op)
            self._aged[key] = step.point
        return self._aged[key]

    def _stale(self, old: int, entry: tuple[Moving | None, Any], op: Op | None) -> tuple[Any, Any]:
        moving, result = entry
        if moving is not None:
            moving = moving._replace(version=0)
        if isinstance(result, Snapshot) and result.version == CURRENT:
            result = replace(result, version=old)
        elif isinstance(op, Swap) and result is not None and not isinstance(result, Thrown):
            result = 0
        return moving, result

    def _earlier(self, entry: tuple[Moving | None, Any], op: Op | None) -> tuple[Any, Any]:
        moving, result = entry
        if moving is not None:
            moving = moving._replace(deadline=self.earlier(moving.deadline))
        if isinstance(op, Now):
            result = self.earlier(result)
        return moving, result

    def earlier(self, moment: float) -> float:
        """`moment` seen one tick later. What is a lease ago is past every deadline that
        came of it, and may as well stay there."""
        return max(moment - 1, -self._lease)

    def _replay(
        self, origin: Origin, tape: tuple[tuple[Moving | None, Any], ...], ops: tuple[Op, ...]
    ) -> Step:
        first = tape[0][0]
        passage = None
        if origin.held is not None and first is not None:
            passage = origin.held.passage(first)
        flow = self._build(origin, passage)
        op: Op | None = None
        for moving, result in tape:
            if passage is not None and moving is not None:
                passage.version, passage.deadline = moving
            try:
                if isinstance(result, Thrown):
                    op = flow.throw(result.error("out of order"))
                else:
                    op = flow.send(result)
            except StopIteration as stop:
                return Step(None, stop.value, _moving(passage))
            except (Exception, KeyboardInterrupt) as error:
                return Step(None, Thrown(type(error)), _moving(passage))
        while isinstance(op, Sleep):
            # It touches nothing: what may come before it may as well come after it.
            tape, ops = (*tape, (None, None)), (*ops, op)
            op = flow.send(None)
        assert op is not None
        key = (origin, tuple(_frames(flow)) if self._merged else tape)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._points)
            self._points.append(Point(origin, tape, (*ops, op)))
        flow.close()
        return Step(number, None, _moving(passage))


def _moving(passage: Passage | None) -> Moving | None:
    return None if passage is None else Moving(passage.version, passage.deadline)


def _frames(flow: Any) -> Iterator[Any]:
    """Where a suspended generator stands, and all generators that it waits for."""
    while flow is not None:
        frame = flow.gi_frame
        names = sorted(frame.f_locals.keys() - MOOT)
        values = tuple((name, _still(frame.f_locals[name])) for name in names)
        yield frame.f_code.co_name, frame.f_lasti, values
        flow = flow.gi_yieldfrom


def _still(value: Any) -> Any:
    """`value` as something that can be compared later. The passage is left out, because
    what moves in it belongs to the world and what does not to the origin."""
    if isinstance(value, GeneratorType):
        return tuple(_frames(value))
    if isinstance(value, Passage):
        return None
    if isinstance(value, dict):
        return tuple(value.items())
    return type(value) if isinstance(value, BaseException) else value
