"""The written form of a record: two writers of the same record write the same text."""

from __future__ import annotations

import json
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from remit_gates._model import (
    Claim,
    Consumption,
    Continuation,
    Holder,
    Intent,
    Outcome,
    Phase,
    Record,
)
from remit_gates.errors import SchemaMismatch


FORMAT: Final = 2
"""Version of the written form. A larger one is refused, never guessed at.

2 added what the audit needs: earlier attempts, who went on with an answer, what was
released, recorded answers, and receipts.
"""


_OF_FORMAT_1: Final = (None, None, None, (None, None))
"""What format 1 cannot say of a consumption, where there is nothing of it."""

_DEFAULTS: Final = {
    kind: (
        attrgetter(*(spec.name for spec in fields(kind))),
        tuple((spec.name, spec.default) for spec in fields(kind)),
    )
    for kind in (Record, Claim, Consumption, Outcome, Continuation)
}
"""What each kind of value is written as, and what is left out."""


def encode(record: Record) -> str:
    """The canonical text of `record`: compact JSON, sorted keys, defaults left out.

    It has the oldest format that can say it, so that while workers are being upgraded, an
    older one is shut out only from what it does not know.
    """
    form = 2 if record.earlier else 1
    for entry in record.consumptions:
        ended = entry.outcome and (entry.outcome.ended, entry.outcome.error)
        added = (entry.answer, entry.continued, entry.receipt, ended or (None, None))
        if added != _OF_FORMAT_1:
            form = 2
    return _WRITER.encode({"format": form, **_slim(record)})


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
        began=data.get("began", ""),
        spent=tuple(data.get("spent", ())),
        claim=_claim(claim) if claim else None,
        consumptions=tuple(_consumption(entry) for entry in data.get("consumptions", ())),
        earlier=tuple(_consumption(entry) for entry in data.get("earlier", ())),
    )


def _slim(value: Any) -> dict[str, Any]:
    """`value` as a dict without what equals its default, so that records stay small. What
    is in it is left as it is."""
    items, names = _DEFAULTS[type(value)]
    return {
        name: item
        for item, (name, default) in zip(items(value), names, strict=True)
        if item is not default and item != default
    }


def _plain(value: Any) -> Any:
    """What JSON has no form for, which it asks for as it comes to it. An intent or a phase
    is a string to it already, and a tuple a list."""
    if type(value) is Holder:
        return [value.host, value.pid, value.started, value.nonce]
    return _slim(value)


# No value holds itself, so there is no circle to look for.
_WRITER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), check_circular=False, default=_plain
)


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
    continued = data.get("continued")
    return Consumption(
        **{
            **data,
            "holder": Holder(*data["holder"]),
            "phase": Phase(data["phase"]),
            "outcome": outcome,
            "continued": None if continued is None else Continuation(**continued),
        }
    )
