"""What keys and hashes mean: the key of a run, and what a script tells of it.

A key is `prefix:framework:namespace:run`, each part percent-encoded, so that no two runs
share one, and no part holds what a pattern or a cluster would take for its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from remit_gates._codec import decode
from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import UsageError
from remit_gates.stores._protocol import Entry


Name: TypeAlias = tuple[str, str, str]
"""Framework, namespace and run: a `RunKey` for those who look at a million of them."""


class Keys:
    """The keys of one store.

    Args:
        prefix: How each begins.

    Raises:
        UsageError: `prefix` is empty.
    """

    def __init__(self, prefix: str) -> None:
        if not prefix:
            raise UsageError(
                "The prefix of a store's keys must not be empty: the records must be told from"
                " whatever else is in the database."
            )
        self._prefix = prefix
        self._start = f"{prefix}:".encode()
        self.marker = f"{prefix}:schema".encode()
        """Where the version of the schema is."""

    def of(self, run: RunKey) -> bytes:
        """The key of `run`.

        Raises:
            UsageError: It holds half a character.
        """
        try:
            parts = [quote(part, safe="") for part in (run.framework, run.namespace, run.run)]
        except UnicodeEncodeError as error:
            raise UsageError("Redis cannot store this key: it is no valid text.") from error
        return f"{self._prefix}:{':'.join(parts)}".encode()

    def pattern(self, framework: str | None, namespace: str | None) -> bytes:
        """What `SCAN` is to match for the records of one framework or namespace, or all."""
        parts = ["*" if part is None else quote(part, safe="") for part in (framework, namespace)]
        literal = re.sub(r"([*?\[\]^\\-])", r"\\\1", self._prefix)
        return ":".join([literal, *parts, "*"]).encode()

    def name(self, key: bytes) -> Name | None:
        """The name of the run whose key `key` is; None when it is no record's."""
        if not key.startswith(self._start) or not key.isascii():
            return None
        parts = key[len(self._start) :].decode().split(":")
        if len(parts) != 3:
            return None
        if b"%" in key:
            parts = [unquote(part) for part in parts]
        return (parts[0], parts[1], parts[2])


def micros(seconds: float) -> int:
    """`seconds` in the unit of the server's clock."""
    return int(seconds * 1_000_000)


def snapshot(row: Sequence[Any]) -> Snapshot:
    """What the script `read` tells of a run. Of an expired claim the version is negated,
    which the script `swap` understands."""
    version, expires, _, text, clock = row
    now = int(clock)
    if version is None or text is None:
        return Snapshot(None, Record(), None, now / 1e6)
    if not expires:
        return Snapshot(int(version), decode(text.decode()), None, now / 1e6)
    left = int(expires) - now
    known = int(version) if left > 0 else -int(version)
    return Snapshot(known, decode(text.decode()), left / 1e6, now / 1e6)


def entry(run: RunKey, row: Sequence[Any]) -> Entry | None:
    """The row of a scan; None when the record has gone since its key was found."""
    seen = snapshot(row)
    return None if seen.version is None else Entry(run, seen, int(row[2]) / 1e6)
