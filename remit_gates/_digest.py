"""The digest of an answer: equal answers to one pause have equal digests everywhere.

An answer with no canonical form (an object of a class of its own) has no digest, and is
then never taken for the same as another.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any, Final


_WRITER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def digest(answer: Any, run: str, pause: str) -> str | None:
    """A digest of `answer` as given to `pause` of `run`; None if it has none.

    Keyed by run and pause, so that equal answers elsewhere do not show as equal. It is
    no secret: whoever may read the store can try likely answers.
    """
    try:
        text = _WRITER.encode(_plain(answer))
    except Exception:  # noqa: BLE001 - code of the answer's own class ran
        return None
    scope = hashlib.sha256(f"{len(run)}:{run}{pause}".encode(errors="surrogatepass")).digest()
    return hashlib.blake2b(text.encode(), key=scope, digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    """`value` in JSON's own types, each other type under its name.

    Raises:
        TypeError: It has no canonical form.
    """
    if isinstance(value, enum.Enum):
        return {"enum": [type(value).__qualname__, value.name, _plain(value.value)]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        pairs = [
            [json.dumps(_plain(key), sort_keys=True), _plain(item)] for key, item in value.items()
        ]
        return {"map": sorted(pairs, key=lambda pair: pair[0])}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(json.dumps(_plain(item), sort_keys=True) for item in value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, (datetime.date, datetime.time)):
        return {type(value).__name__: value.isoformat()}
    if isinstance(value, (uuid.UUID, decimal.Decimal, datetime.timedelta, PurePath)):
        return {type(value).__name__: str(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "object": type(value).__qualname__,
            "fields": {spec.name: _plain(getattr(value, spec.name)) for spec in fields(value)},
        }
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return {"object": type(value).__qualname__, "fields": _plain(dump())}
    raise TypeError(type(value).__qualname__)
