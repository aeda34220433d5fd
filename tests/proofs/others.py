"""The same world, judged by the pure `_pauses` of CrewAI and of pydantic-graph.

CrewAI deletes its row of a pause when it takes the answer in; what waits is the row.
pydantic-graph marks the snapshot of a node as running; the next node has one of its own.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import remit_gates
from remit_gates._model import Delivery, Record
from remit_gates._passage import Judge
from remit_gates.pydantic_graph import _pauses as pydantic_pauses
from tests.proofs.world import END, P, Scenario, holder


def _pure(name: str) -> ModuleType:
    """A module of an adapter without its package, which would want the framework."""
    path = Path(remit_gates.__file__).parent / name / "_pauses.py"
    spec = importlib.util.spec_from_file_location(f"pure_{name}_pauses", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


crewai_pauses = _pure("crewai")


@dataclass(frozen=True)
class CrewAIScenario(Scenario):
    """Every delivery has an instance that is open at the pause that it means to answer."""

    pauses: tuple[str, str] = ("p@1", "q@2")

    def judge(self, who: int) -> Judge:
        spec = self.deliveries[who]
        request = crewai_pauses.Request(
            run="run", pause=self.pauses[spec.meant], answer=spec.text, delivery=spec.id
        )

        def judged(loaded: tuple[int, int | None], record: Record) -> Delivery:
            place, answer = loaded
            waiting = self.pause(place) if answer is None else None
            delivery: Delivery = crewai_pauses.judge(
                request, waiting, record, holder(who), self.policy
            )
            return delivery

        return judged


@dataclass(frozen=True)
class PydanticGraphScenario(Scenario):
    """A bound delivery brings the snapshot that it was shown; another takes what is parked."""

    def snapshots(self, place: int, answer: int | None) -> list[Any]:
        """The history of a run that has come to `place`, and has begun its node or not."""
        names = [str(self.pause(at)) for at in range(P, place + 1) if at != END]
        past = "success"
        found = [SimpleNamespace(id=name, kind="node", status=past) for name in names]
        if place == END:
            return [*found, SimpleNamespace(id="end", kind="end", status=past)]
        found[-1].status = "created" if answer is None else "running"
        return found

    def judge(self, who: int) -> Judge:
        spec = self.deliveries[who]
        shown = self.pauses[spec.meant] if spec.bound else None
        request = pydantic_pauses.Request(pause=shown, delivery=spec.id)

        def judged(loaded: tuple[int, int | None], record: Record) -> Delivery:
            found = pydantic_pauses.Loaded(self.snapshots(*loaded))
            return pydantic_pauses.judge(request, found, record, holder(who), self.policy)

        return judged
