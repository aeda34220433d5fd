"""What the nodes did, in the order in which they did it, across every process.

An entry is one write to a file opened with O_APPEND: no process loses or splits the
entry of another, and nothing that the graph rolls back or overwrites is uncounted.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final


PATIENCE: Final = 30.0
"""Seconds that anything in the demo waits for anything else at most."""

POLL: Final = 0.005


@dataclass(frozen=True, slots=True)
class Entry:
    """One node that ran.

    Attributes:
        run: The run that it ran in.
        caller: Number of the caller that it ran for; 0 for whoever started the run.
        node: Name of the node.
        request: What the run was about.
    """

    run: str
    caller: int
    node: str
    request: str


class Journal:
    """The writing end, one a process. `run` and `caller` say whose call it serves now."""

    def __init__(self, folder: Path) -> None:
        self.run = ""
        self.caller = 0
        self._folder = folder
        self._file = os.open(_path(folder), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, node: str, request: str) -> None:
        """Record that `node` runs; an effect counts from this moment."""
        entry = Entry(self.run, self.caller, node, request)
        os.write(self._file, json.dumps(asdict(entry)).encode() + b"\n")

    def await_provider(self) -> None:
        """Be as slow as the payment provider: return when it has answered.

        Raises:
            TimeoutError: It never did.
        """
        end = time.monotonic() + PATIENCE
        while not _answered(self._folder, self.run).exists():
            if time.monotonic() > end:
                raise TimeoutError("the payment provider did not answer")
            time.sleep(POLL)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def provider_answers(folder: Path, run: str) -> None:
    """Let every charge of `run` return, those to come as well."""
    _answered(folder, run).touch()


def entries(folder: Path, run: str) -> list[Entry]:
    """What has been recorded for `run` so far."""
    try:
        text = _path(folder).read_bytes()
    except FileNotFoundError:
        return []
    whole = text[: text.rfind(b"\n") + 1]
    every = (Entry(**json.loads(line)) for line in whole.splitlines())
    return [entry for entry in every if entry.run == run]


def _path(folder: Path) -> Path:
    return folder / "journal.jsonl"


def _answered(folder: Path, run: str) -> Path:
    return folder / f"{run}.answered"
