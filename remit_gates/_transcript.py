"""An answer as a person reads it in an audit: JSON text, of any answer, and of a bounded size.

It is kept only where the policy says so. Two answers may have one transcript: what tells
answers apart is their digest.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any, Final


LONGEST: Final = 4000
"""Characters of JSON text of which a transcript has the whole."""


def transcript(answer: Any) -> str:
    """`answer` as JSON text.

    What has no JSON form of its own stands as `{"repr": ...}`, and of a text longer than
    `LONGEST` there is the start, as `{"cut": ..., "length": ...}`.
    """
    try:
        text = _WRITER.encode(answer)
    except Exception:  # noqa: BLE001 -- code of the answer's own class ran
        text = json.dumps({"repr": _repr(answer)})
    if len(text) <= LONGEST:
        return text
    return json.dumps({"cut": text[:LONGEST], "length": len(text)})


def _plain(value: Any) -> Any:
    """`value`, which JSON does not know, in types that it knows, as far as that goes."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, decimal.Decimal, datetime.timedelta, PurePath)):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if is_dataclass(value) and not isinstance(value, type):
        return {spec.name: getattr(value, spec.name) for spec in fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else {"repr": _repr(value)}


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 -- as above
        return f"<{type(value).__qualname__}>"


_WRITER: Final = json.JSONEncoder(allow_nan=False, default=_plain)
