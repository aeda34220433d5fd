"""The written form of a record: two writers of the same record write the same text."""

from __future__ import annotations

import enum
import json
from dataclasses import fields, is_dataclass
from typing import Any, Final

from remit_gates._model import Claim, Consumption, Holder, Intent, Outcome, Phase, Record
from remit_gates.errors import SchemaMismatch


FORMAT: Final = 1
"""Version of the written form. A larger one is refused, never guessed at."""


def encode(record: Record) -> str:
    """The canonical text of `record`: compact JSON, sorted keys, defaults left out."""
    return json.dumps({"format": FORMAT, **_slim(record)}, sort_keys=True, separators=(",", ":"))


def decode(text: str) -> Record:
    """The record that `encode` wrote as `text`.

    Raises:
        SchemaMismatch: The text was written by a newer release.
    """
    try:
        data = json.loads(text)
        written = data.pop("format")
        record = None if written > FORMAT else _record(data)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise SchemaMismatch(
            "A record is not in the written form of remit-gates. Nothing was changed. Look"
            " at what else writes to this table."
        ) from error
    if record is None:
        raise SchemaMismatch(
            f"A record has format {written}, and this release knows {FORMAT} at most."
            " Nothing was read or changed. Upgrade remit-gates on this worker."
        )
    return record


def _record(data: dict[str, Any]) -> Record:
    claim = data.get("claim")
    return Record(
        token=data.get("token", 0),
        served=data.get("served", 0),
        left=data.get("left", ""),
        owed=data.get("owed"),
        spent=tuple(data.get("spent", ())),
        claim=_claim(claim) if claim else None,
        consumptions=tuple(_consumption(entry) for entry in data.get("consumptions", ())),
    )


def _slim(value: Any) -> dict[str, Any]:
    """`value` as a dict without what equals its default, so that records stay small."""
    out: dict[str, Any] = {}
    for spec in fields(value):
        item = getattr(value, spec.name)
        if item == spec.default:
            continue
        if isinstance(item, Holder):
            item = [item.host, item.pid, item.started, item.nonce]
        elif is_dataclass(item):
            item = _slim(item)
        elif isinstance(item, tuple):
            item = [_slim(part) if is_dataclass(part) else part for part in item]
        elif isinstance(item, enum.Enum):
            item = item.value
        out[spec.name] = item
    return out


def _claim(data: dict[str, Any]) -> Claim:
    return Claim(
        **{
            **data,
            "holder": Holder(*data["holder"]),
            "intent": Intent(data["intent"]),
            "pauses": tuple(data["pauses"]),
        }
    )


def _consumption(data: dict[str, Any]) -> Consumption:
    outcome = data.get("outcome")
    if outcome is not None:
        outcome = Outcome(**{**outcome, "waiting": tuple(outcome.get("waiting", ()))})
    return Consumption(
        **{
            **data,
            "holder": Holder(*data["holder"]),
            "phase": Phase(data["phase"]),
            "outcome": outcome,
        }
    )
