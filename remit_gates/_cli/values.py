"""What an operator writes on the command line, and how the same is written back."""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
from collections.abc import Iterable
from typing import Final, NamedTuple

from remit_gates._model import RunKey


UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

_AGE: Final = re.compile(r"(?:[0-9]{1,9}[smhdw])+")
_PUBLIC: Final = re.compile(r"[a-z]+://([\w.-]+@)?[\w.-]*(:[0-9]+)?(/[\w.~/-]*)?")


class Age(NamedTuple):
    """A length of time, and how it was written."""

    seconds: float
    text: str


def age(text: str) -> Age:
    """What a text such as `90s`, `10m`, `1h30m` or `30d` means."""
    if not _AGE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no age, such as 90s, 10m, 1h30m or 30d")
    parts = re.findall(r"([0-9]+)(.)", text)
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if seconds > 100 * 366 * UNITS["d"]:
        raise argparse.ArgumentTypeError(f"{text!r} is more than a hundred years")
    return Age(seconds, text)


def limit(text: str) -> int:
    """A number of rows."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


def key(text: str) -> RunKey:
    """The key of a run, as `written` writes it."""
    try:
        parts = json.loads(text)
    except ValueError:
        parts = None
    if isinstance(parts, list) and len(parts) == 3 and all(isinstance(part, str) for part in parts):
        return RunKey(*parts)
    raise argparse.ArgumentTypeError(
        f'{text!r} is no key, such as ["langgraph", "", "order-17"], which the page before tells'
    )


def written(run: RunKey) -> str:
    """`run` as text that no name in it can confuse."""
    return json.dumps([run.framework, run.namespace, run.run])


def shown(url: str) -> str:
    """`url` where it certainly holds no credential; else only a word that stands for it."""
    return url if url.startswith("sqlite:///") or _PUBLIC.fullmatch(url) else "URL"


def command(words: Iterable[str]) -> str:
    """`words` as a shell reads them, and a terminal can show them."""
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    kept = (
        char if char.isprintable() and char not in "'\\" else f"\\U{ord(char):08x}" for char in word
    )
    return f"$'{''.join(kept)}'"


def clean(text: str) -> str:
    """`text` for a terminal: names come from outside, and may hold what commands it."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def moment(seconds: float | None) -> str | None:
    """A time of the store's clock, as RFC 3339 has it."""
    if seconds is None:
        return None
    time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """A length of time in the unit that suits it."""
    for unit, under in (("s", 120.0), ("m", 7200.0), ("h", 172_800.0)):
        if seconds < under:
            return f"{max(0.0, seconds) // UNITS[unit]:.0f}{unit}"
    return f"{seconds // UNITS['d']:.0f}d"
