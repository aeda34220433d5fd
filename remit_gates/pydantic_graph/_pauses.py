"""What a resume of a graph run comes to, judged from the newest snapshot and the record; purely.

A pause is the snapshot of a node that is to run next, and its name is the snapshot's id. What
a run left unfinished goes on under the pauses that it had answered, so that every attempt at
it has one idempotency key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from remit_gates._model import Answer, Consumption, Delivery, Holder, Intent, Reason, Record
from remit_gates._policy import Policy


OPEN: Final = frozenset(("created", "pending"))
"""The states of a snapshot whose node has not begun. `pending` means that somebody has loaded
it, not that somebody has it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt to run a node.

    Attributes:
        node: Snapshot id of the node that the caller brings; None to take what is parked.
        pause: The snapshot id that the caller was shown, if the gate was told.
        delivery: The delivery id.
        actor: Who delivers.
    """

    node: str | None = None
    pause: str | None = None
    delivery: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """The history of a run, oldest first, as its persistence gave it."""

    snapshots: Sequence[Any]

    @property
    def newest(self) -> Any:
        """The newest snapshot; None for a run that has none."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def over(self) -> bool:
        """Whether the run has not begun, or has reached its end."""
        return self.newest is None or self.newest.kind == "end"

    @property
    def open(self) -> bool:
        """Whether the newest node has not begun."""
        return not self.over and self.newest.status in OPEN

    @property
    def position(self) -> str:
        """Id of the newest snapshot; empty for a run that has none."""
        return "" if self.newest is None else str(self.newest.id)


def judge(
    request: Request, loaded: Loaded, record: Record, holder: Holder, policy: Policy
) -> Delivery:
    """What `request` comes to, given what was loaded."""

    def delivery(*pauses: str, bound: bool, reason: Reason | None = None) -> Delivery:
        return Delivery(
            intent=Intent.ANSWER,
            holder=holder,
            answers=tuple(map(Answer, pauses)),
            bound=bound,
            id=request.delivery,
            actor=request.actor,
            position=loaded.position,
            reason=reason,
        )

    node, rest = request.node, unfinished(record)
    if node is not None and node != loaded.position:
        if any(snapshot.id == node for snapshot in loaded.snapshots):
            # It was what waited when the caller looked.
            return delivery(node, bound=True, reason=Reason.SUPERSEDED)
        if loaded.over or (not loaded.open and record.claim is None):
            # A run that begins, or begins anew after one that has ended.
            return delivery(node, bound=True)
    named = request.pause if request.pause is not None else node
    bound = request.pause is not None or node == loaded.position
    if loaded.over:
        pauses = () if named is None else (named,)
        # With nothing to name, there is nothing that a policy could want named.
        bound = bound or policy.answers == "bound"
        return delivery(*pauses, bound=bound, reason=Reason.NOT_PARKED)
    if request.pause not in (None, loaded.position, *rest):
        return delivery(request.pause or "", bound=True, reason=Reason.NOT_PARKED)
    if rest:
        return delivery(*rest, bound=bound)
    return delivery(loaded.position, bound=bound, reason=_unknown(loaded, record, policy))


def unfinished(record: Record) -> tuple[str, ...]:
    """The pauses that the last run answered and did not finish, released or not."""
    return tuple(
        entry.pause
        for entry in record.consumptions
        if entry in record.unfinished or (entry.token == record.last and _released(entry))
    )


def _released(entry: Consumption) -> bool:
    return (
        entry.reopened is not None
        and entry.outcome is not None
        and entry.outcome.state == "released"
    )


def _unknown(loaded: Loaded, record: Record, policy: Policy) -> Reason | None:
    """Why a run is not served whose node has begun, though the record knows nothing of it: it
    was run without the gate, or its record was deleted."""
    if loaded.open or record.claim is not None:
        return None
    if loaded.newest.status == "error":
        return None if policy.on_failure == "retry" else Reason.FAILED
    return None if policy.on_abandoned == "serve" else Reason.ABANDONED
