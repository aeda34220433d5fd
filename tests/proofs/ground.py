"""What each operation of a flow may result in, on one store that may lose acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from remit_gates._decide import release
from remit_gates._model import Record, Snapshot
from remit_gates._ops import Dead, Flow, Load, Now, Op, Read, Renew, Swap
from remit_gates._passage import Passage, enter, fence, leave, renew
from remit_gates.errors import OutcomeUnknown, StoreUnavailable
from tests.proofs.flows import ANY, CURRENT, RUN, Flows, Held, Origin, Thrown
from tests.proofs.invariants import on_swap
from tests.proofs.world import PLACES, TICKS, Process, Scenario, World, holder


Label = tuple[Any, ...]


@dataclass(frozen=True)
class Faults:
    """What a broken store does: swap whatever the version, or renew an expired lease."""

    unchecked: bool = False
    revives: bool = False


_LEFT: Final = {None: "", 0.0: "whose lease has ended", 1.0: "whose lease lives"}

SOUND: Final = Faults()


class Ground:
    """The operations of one scenario, and the tables that number its larger values."""

    def __init__(self, scenario: Scenario, faults: Faults = SOUND, *, merged: bool = True) -> None:
        self.scenario = scenario
        self.faults = faults
        self.flows = Flows(self.build, TICKS, merged=merged)
        self._judges = [scenario.judge(who) for who in range(len(scenario.deliveries))]
        self.records: list[Record] = [Record()]
        self._numbers: dict[Record, int] = {Record(): 0}
        # Records are large. The same object is looked up over and over, so they go by identity
        # where they can, and are kept so that no other object comes by it.
        self._numbered: dict[int, tuple[Record, int]] = {}
        self._snapshots: dict[tuple[Any, ...], Snapshot] = {}
        self._released: dict[tuple[int, int], int | None] = {}
        self._older: dict[tuple[Process, Any], Process] = {}
        self.held: list[Held] = []
        self._held: dict[Held, int] = {}

    def build(self, origin: Origin, passage: Passage | None) -> Flow[Any]:
        if passage is None:
            judge = self._judges[origin.who]
            return enter(RUN, holder(origin.who), self.scenario.policy, judge)
        if origin.name == "leave":
            return leave(passage, origin.outcome, origin.applied)
        return renew(passage) if origin.name == "renew" else fence(passage)

    def record(self, world: World) -> Record:
        return self.records[world.record or 0]

    def perform(self, world: World, who: int, op: Op) -> Iterator[tuple[Label, World, Any]]:
        """All that `op` may result in."""
        record = self.record(world)
        claim = record.claim
        if isinstance(op, Read):
            left = None if claim is None else float(bool(world.left))
            version = None if world.record is None else CURRENT
            for late in range(self.scenario.drift + 1):
                now = (record.token + late + 1.5) / 1000 if self.scenario.drift else 0.0
                key = (world.record, version, left, now)
                if key not in self._snapshots:
                    self._snapshots[key] = Snapshot(version, record, left, now)
                yield ("reads", record, _LEFT[left]), world, self._snapshots[key]
            if self.scenario.outages:
                yield ("cannot read",), world, Thrown(StoreUnavailable)
        elif isinstance(op, Load):
            loaded = self.scenario.loaded(world)
            yield ("sees the run at", PLACES[world.place]), world, loaded
        elif isinstance(op, Now):
            yield ("looks at the clock",), world, 0.0
        elif isinstance(op, Dead):
            dead = world.processes[op.holder.pid].stage == "crashed"
            yield ("sees that the holder is " + ("dead" if dead else "alive"),), world, dead
        elif isinstance(op, Renew):
            alive = bool(world.left) or self.faults.revives
            if claim is not None and claim.token == op.token and alive:
                yield ("renews",), world._replace(left=TICKS), True
            else:
                yield ("cannot renew",), world, False
        elif isinstance(op, Swap):
            yield from self._swap(world, who, op)
        else:
            raise TypeError(f"the proofs do not know what {op} may result in")

    def _swap(self, world: World, who: int, op: Swap) -> Iterator[tuple[Label, World, Any]]:
        number = self.number(op.record)
        newest = op.expected == (None if world.record is None else CURRENT)
        after, result = world, None
        if newest or self.faults.unchecked or op.expected == ANY:
            after, result = self.landed(world, number, op.lease), CURRENT
            yield ("swaps in", op.record), after, result
        else:
            yield ("swap fails",), world, None
        if world.losses:
            adrift = world.adrift | {(number, op.lease, who)} if newest else world.adrift
            lost = world._replace(losses=world.losses - 1, adrift=adrift)
            yield ("gets no answer to its swap of", op.record), lost, Thrown(OutcomeUnknown)
        if world.interrupts and world.processes[who].stage == "entering":
            for landed in {world, after}:
                cut = landed._replace(interrupts=world.interrupts - 1)
                yield ("is interrupted in its swap",), cut, Thrown(KeyboardInterrupt)

    def number(self, record: Record) -> int:
        """The number of `record`, all of whose times are one: nothing depends on them. Of
        earlier attempts, a late holder looks for how its own ended; all else is for the audit."""
        if id(record) not in self._numbered:
            self._numbered[id(record)] = record, self._number(record)
        return self._numbered[id(record)][1]

    def released(self, world: World) -> int | None:
        """The number of the record that an operator's release makes of it; None if none."""
        key = (world.record or 0, world.left or 0)
        if key not in self._released:
            after = release(self.record(world), float(key[1]), 0.0)
            self._released[key] = self.number(after) if isinstance(after, Record) else None
        return self._released[key]

    def _number(self, record: Record) -> int:
        entries = tuple(
            entry if entry.until is None else replace(entry, until=0.0)
            for entry in record.consumptions
        )
        earlier = tuple(
            replace(entry, until=0.0) for entry in record.earlier if entry.outcome is not None
        )
        record = replace(record, consumptions=entries, earlier=earlier)
        if record not in self._numbers:
            self._numbers[record] = len(self.records)
            self.records.append(record)
        return self._numbers[record]

    def landed(self, world: World, number: int, lease: float | None) -> World:
        """The world after a swap: what was read before is stale, and what was sent at an
        older version will not land any more."""
        processes = tuple(self._aged(process, "swap") for process in world.processes)
        left = None if lease is None else int(lease)
        breach = on_swap(self.record(world), self.records[number])
        after = world._replace(record=number, left=left, adrift=frozenset(), processes=processes)
        return after.broken(breach)

    def ticked(self, world: World) -> World:
        processes = tuple(self._aged(process, "tick") for process in world.processes)
        left = None if world.left is None else max(world.left - 1, 0)
        return world._replace(left=left, processes=processes)

    def _aged(self, process: Process, event: Any) -> Process:
        key = (process, event)
        if key not in self._older:
            self._older[key] = self._age(process, event)
        return self._older[key]

    def _age(self, process: Process, event: Any) -> Process:
        flow, beat, moving = process.flow, process.beat, process.moving
        if flow is None and moving is None:
            return process
        if flow is not None:
            flow = self.flows.aged(flow, event)
        if beat is not None:
            beat = self.flows.aged(beat, event)
        if moving is not None and event == "swap":
            moving = moving._replace(version=0)
        elif moving is not None:
            moving = moving._replace(deadline=self.flows.earlier(moving.deadline))
        return process._replace(flow=flow, beat=beat, moving=moving)
