"""Every step that a world can take: each process performs its next operation on the store or
on the run, and crashes, lost acknowledgements, ticks and operators come in between.

What a delivery does with its claim is the whole of what an adapter does: store the answer,
run the node, store what came of it, each write behind the fence, and leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from remit_gates._model import Intent, Outcome
from remit_gates._ops import Dead, Read
from remit_gates._passage import Denied, Passage
from tests.proofs.flows import Held, Moving, Origin, Step, Thrown
from tests.proofs.ground import Ground, Label
from tests.proofs.invariants import counts, on_end, on_error, on_left, on_run, on_write, standing
from tests.proofs.world import PLACES, Process, Run, World, first, holder


SERVING: Final = ("held", "storing", "node", "ran", "saving")
"""Stages at which a process may still write."""


class Model(Ground):
    """The steps of one scenario."""

    ends: set[tuple[str, str]]
    """How each delivery can end, as far as that is known."""

    def first(self) -> World:
        self.ends = set()
        world = first(self.scenario)
        for who, process in enumerate(world.processes):
            flow = self.flows.start(Origin("enter", who)).point
            world = world.put(who, process._replace(stage="entering", flow=flow))
        return world

    def breach(self, world: World) -> str | None:
        return standing(self.scenario, world, self.record(world), self.held)

    def steps(self, world: World) -> Iterator[tuple[Label, World]]:
        """The worlds that come next, each with what happened."""
        for who, process in enumerate(world.processes):
            yield from self._process(world, who, process)
        for number, lease, who in world.adrift:
            yield (who, "its lost swap lands"), self.landed(world, number, lease)
        if self.scenario.ticks:
            yield (None, "a lease's time passes"), self.ticked(world)
        if world.releases and world.record is not None:
            after = self.released(world)
            if after is not None:
                yield (
                    (None, "an operator releases the run"),
                    self.landed(world, after, None)._replace(
                        releases=world.releases - 1,
                        reopened=(world.reopened[0] + 1, world.reopened[1] + 1),
                    ),
                )

    def _process(self, world: World, who: int, process: Process) -> Iterator[tuple[Label, World]]:
        if process.flow is not None:
            op = self.flows[process.flow].op
            if process.seen is None and self.scenario.bare(who) and isinstance(op, Read):
                world = world.put(who, process._replace(seen=world.place))
            for label, after, result in self.perform(world, who, op):
                now = after.processes[who]
                assert now.flow is not None
                step = self.flows.send(now.flow, now.moving, result)
                if now.seen is not None and isinstance(op, Dead) and result:
                    # A holder that was seen to be dead was gone before this one looked.
                    after = after.put(who, now._replace(seen=after.place))
                yield (who, self._aim(process), *label), self._moved(after, who, step)
        elif process.stage in SERVING:
            yield from self._serve(world, who, process)
        if process.beat is not None:
            for label, after, result in self.perform(world, who, self.flows[process.beat].op):
                now = after.processes[who]
                assert now.beat is not None
                step = self.flows.send(now.beat, now.moving, result)
                beaten = now._replace(beat=step.point, moving=step.moving)
                if isinstance(step.value, Thrown):
                    after = after.broken(on_error(step.value.error))
                yield (who, "heartbeat", *label), after.put(who, beaten)
        elif who < self.scenario.beats and process.stage in SERVING:
            step = self.flows.start(self._origin(process, who, "renew"), process.moving)
            yield (who, "heartbeat", "begins"), world.put(who, process._replace(beat=step.point))
        claim = self.record(world).claim
        # Without its claim in the store, a crash is the same as never moving again.
        mine = claim is not None and claim.holder == holder(who)
        if world.crashes and mine and process.stage not in ("over", "crashed"):
            gone = world.put(who, Process("crashed"), crashes=world.crashes - 1)
            yield (who, "crashes"), gone

    def _aim(self, process: Process) -> str:
        return "fence" if process.stage in SERVING else process.stage

    def _origin(self, process: Process, who: int, name: Any, *rest: Any) -> Origin:
        assert process.held is not None
        return Origin(name, who, self.held[process.held], *rest)

    def _serve(self, world: World, who: int, process: Process) -> Iterator[tuple[Label, World]]:
        """What the process that holds the run does next, of its own accord."""
        assert process.held is not None
        held = self.held[process.held]
        place, recorded = held.loaded[:2]
        answers = held.claim.intent is Intent.ANSWER
        if process.stage == "node":
            user = who if answers else recorded
            run = Run(place, user, held.claim.token, held.claim.attempt, held.claim.intent)
            after = world._replace(runs=(*world.runs, run)).broken(on_run(process.seen, place))
            ran = after.put(who, process._replace(stage="ran"))
            yield (who, "runs the node of", PLACES[place]), self._fence(ran, who)
            if self.scenario.falters:
                failed = Outcome("failed", detail="ValueError")
                yield (who, "fails in the node of", PLACES[place]), self._leave(after, who, failed)
            return
        if process.stage in ("storing", "saving"):
            yield (who, "writes"), self._written(world, who)
            return
        if self.scenario.falters:
            yield (who, "withdraws"), self._leave(world, who, None)
        if not answers and recorded is None:
            again = list(world.reopened)
            again[place] += 1
            after = world._replace(reopened=(again[0], again[1]))
            asked = self._leave(after, who, self.scenario.parked(place))
            yield (who, "asks", PLACES[place], "again"), asked
        elif answers and self.scenario.durable:
            yield (who, "is to store its answer"), self._fence(world, who)
        else:
            yield (who, "starts its node"), world.put(who, process._replace(stage="node"))

    def _fence(self, world: World, who: int) -> World:
        process = world.processes[who]
        step = self.flows.start(self._origin(process, who, "fence"), process.moving)
        return world.put(who, process._replace(flow=step.point))

    def _leave(self, world: World, who: int, outcome: Outcome | None) -> World:
        process = world.processes[who]
        if outcome is None and process.held is not None:
            held = self.held[process.held]
            world = world.counts(held.loaded[0], -1) if counts(held) else world
        origin = self._origin(process, who, "leave", outcome, True)
        step = self.flows.start(origin, process.moving)
        return world.put(who, process._replace(stage="leaving", flow=step.point))

    def _moved(self, world: World, who: int, step: Step) -> World:
        """The world after a process's flow went on, or ended."""
        process = world.processes[who]
        if step.point is not None:
            return world.put(who, process._replace(flow=step.point, moving=step.moving))
        process = process._replace(flow=None, moving=step.moving)
        if isinstance(step.value, Thrown):
            world = world.broken(on_error(step.value.error))
        record = self.record(world)
        if process.stage == "entering":
            return self._entered(world, who, step.value)
        if process.stage == "leaving":
            assert process.held is not None
            if isinstance(step.value, Thrown):
                return self._over(world, who, step.value.error.__name__, None)
            breach = on_left(self.held[process.held].claim.token, record) if step.value else None
            return self._over(world, who, f"left: {step.value}", breach)
        assert process.held is not None
        if isinstance(step.value, Thrown):
            lost = None if process.stage == "held" else Outcome("failed", detail="ClaimLost")
            return self._leave(world.put(who, process), who, lost)
        if self.scenario.stalls:
            stage = "storing" if process.stage == "held" else "saving"
            return world.put(who, process._replace(stage=stage))
        return self._written(world.put(who, process), who)

    def _written(self, world: World, who: int) -> World:
        """The world after the write of a process that the fence let through."""
        process = world.processes[who]
        assert process.held is not None
        place = self.held[process.held].loaded[0]
        world = world.broken(on_write(who, self.record(world)))
        if process.stage in ("held", "storing"):
            answer = who if place == world.place else world.answer
            stored = process._replace(stage="node")
            return world.put(who, stored, answer=answer)
        token = self.held[process.held].claim.token if self.scenario.signed else 0
        after = world._replace(place=place + 1, answer=None, wrote=token)
        return self._leave(after, who, self.scenario.parked(place + 1))

    def _entered(self, world: World, who: int, value: Any) -> World:
        if isinstance(value, Passage):
            held = Held(
                value.before,
                value.record,
                value.claim,
                value.replaced,
                value.loaded,
                value.delivery,
            )
            if held not in self._held:
                self._held[held] = len(self.held)
                self.held.append(held)
            moving = Moving(value.version, value.deadline)
            seen = world.processes[who].seen
            process = Process("held", held=self._held[held], moving=moving, seen=seen)
            served = world.counts(value.loaded[0]) if counts(held) else world
            return served.put(who, process)
        if isinstance(value, Denied):
            ended, definite = value.verdict.reason.value, True
        else:
            ended, definite = value.error.__name__, getattr(value.error, "definite", True)
        breach = on_end(world, who, self.record(world)) if definite else None
        return self._over(world, who, ended, breach)

    def _over(self, world: World, who: int, how: str, breach: str | None) -> World:
        self.ends.add((self.scenario.deliveries[who].name, how))
        return world.broken(breach).put(who, Process("over"))
