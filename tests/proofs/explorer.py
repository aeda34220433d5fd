"""All worlds that can be reached, nearest first: the first breach found has a shortest trace."""

from __future__ import annotations

import gc
from collections import deque
from dataclasses import dataclass, field

from tests.proofs.ground import Label
from tests.proofs.model import Model
from tests.proofs.trace import told
from tests.proofs.world import World


@dataclass
class Explored:
    """Attributes:
    worlds: How many worlds can be reached.
    points: At how many points their flows stand.
    ends: How each delivery can end, by its name.
    breach: The invariant that breaks, if one does.
    trace: The shortest way there, a step a line.
    """

    worlds: int
    points: int
    ends: set[tuple[str, str]] = field(default_factory=set)
    breach: str | None = None
    trace: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        size = f"{self.worlds} worlds, {self.points} points of flows"
        return "\n".join([size, *([self.breach] if self.breach else ()), *self.trace])


def explore(model: Model, limit: int = 2_000_000) -> Explored:
    """Visit every world, or stop at the first breach."""
    collecting = gc.isenabled()
    # Worlds are kept until the end, and to look through all of them again and again takes long.
    gc.disable()
    try:
        return _explore(model, limit)
    finally:
        if collecting:
            gc.enable()


def _explore(model: Model, limit: int) -> Explored:
    start = model.first()
    came: dict[World, tuple[World, Label] | None] = {start: None}
    queue = deque([start])
    while queue:
        world = queue.popleft()
        breach = model.breach(world)
        if breach is not None:
            trace = told(model, _labels(came, world))
            return Explored(len(came), len(model.flows), model.ends, breach, trace)
        for label, after in model.steps(world):
            # To look a world up is dear: it is hashed whole.
            link = (world, label)
            if came.setdefault(after, link) is link:
                queue.append(after)
        assert len(came) <= limit, f"more than {limit} worlds"
    return Explored(len(came), len(model.flows), model.ends)


def _labels(came: dict[World, tuple[World, Label] | None], world: World) -> list[Label]:
    labels = []
    while (step := came[world]) is not None:
        world, label = step
        labels.append(label)
    return labels[::-1]
