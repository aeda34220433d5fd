"""A trace as lines that a person can follow."""

from __future__ import annotations

from remit_gates._model import Record
from tests.proofs.ground import Ground, Label


def told(ground: Ground, labels: list[Label]) -> list[str]:
    names = [spec.name for spec in ground.scenario.deliveries]
    return [
        f"{number:2}. "
        + " ".join(filter(None, (_word(names, part) for part in _parts(names, label))))
        for number, label in enumerate(labels, 1)
    ]


def _parts(names: list[str], label: Label) -> list[object]:
    who, *rest = label
    return [*([] if who is None else [names[who] + ":"]), *rest]


def _word(names: list[str], part: object) -> str:
    if isinstance(part, Record):
        return f"[{_record(names, part)}]"
    return str(part)


def _record(names: list[str], record: Record) -> str:
    claim = record.claim
    held = "free" if claim is None else f"token {claim.token} of {names[claim.holder.pid]}"
    entries = (
        f"{entry.pause} {entry.phase.value} by {names[entry.holder.pid]}"
        + (f", open {entry.reopened}" if entry.reopened else "")
        for entry in record.consumptions
    )
    return "; ".join((held, *entries))
