"""The same world, in which each delivery is judged by an adapter's own `_pauses` and the run
is what that adapter would load: nothing about naming pauses is assumed any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt

from remit_gates._model import Delivery, Intent, Record
from remit_gates._passage import Judge
from remit_gates.langgraph import _pauses
from remit_gates.langgraph._pauses import (
    INTERRUPT,
    RESUME,
    WRITTEN_UNDER,
    Loaded,
    Request,
    Write,
)
from tests.proofs.world import END, P, Q, Scenario, World, holder


@dataclass(frozen=True)
class LangGraphScenario(Scenario):
    """Attributes:
    inside: Whether both questions are asked by one node, at one checkpoint.
    ordinal: Whether interrupt ids tell the questions of one node apart.
    """

    signed: bool = True
    inside: bool = False
    ordinal: bool = True

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of the two questions."""
        return ("i", "j") if self.ordinal else ("i", "i")

    def checkpoint(self, place: int) -> str:
        return "end" if place == END else "c0" if place == P or self.inside else "c1"

    def pause(self, place: int) -> str | None:
        if place == END:
            return None
        name = f"{self.checkpoint(place)}:{self.ids[place]}"
        return name if self.ordinal else f"{name}:{place if self.inside else 0}"

    def loaded(self, world: World) -> tuple[Any, ...]:
        return world.place, world.answer, world.wrote

    def writes(self, place: int, answer: int | None) -> list[Write]:
        """What is pending: the question that waits, and what its task was answered so far."""
        if place == END:
            return []
        told = ["earlier"] if place == Q and self.inside else []
        told += [] if answer is None else [self.deliveries[answer].text]
        question = ("task", INTERRUPT, [Interrupt(place, id=self.ids[place])])
        return [question, *([("task", RESUME, told)] if told else [])]

    def tuple(self, place: int, answer: int | None, wrote: int) -> CheckpointTuple:
        """The checkpoint at which the run waits."""
        name = self.checkpoint(place)
        # Only what `_pauses` looks at.
        checkpoint, metadata = {"id": name}, {WRITTEN_UNDER: wrote} if wrote else {}
        writes = self.writes(place, answer)
        return CheckpointTuple({}, cast(Any, checkpoint), cast(Any, metadata), None, writes)

    def judge(self, who: int) -> Judge:
        spec = self.deliveries[who]
        named: Mapping[str, str] | None = None
        if spec.bound and spec.intent is Intent.ANSWER:
            named = {self.ids[spec.meant]: spec.text}
        request = Request(
            run="run",
            intent=spec.intent,
            named=named,
            bare=None if named else spec.text,
            delivery=spec.id,
            ordinal=self.ordinal,
        )

        def judged(loaded: tuple[int, int | None, int], record: Record) -> Delivery:
            parked = self.tuple(*loaded)
            return _pauses.judge(
                request, Loaded(parked, parked.checkpoint["id"]), record, holder(who)
            )

        return judged
