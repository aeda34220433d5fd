"""What runs did, written down outside of them, as an effect would be.

An entry is one write to a file opened with O_APPEND: it survives a kill, nothing that a
framework rolls back is uncounted, and what every process did stands in one place.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from tests.waiting import until


class Journal:
    """What ran, in every process that was given the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, run: str, step: str) -> None:
        """Write down that `step` of `run` has begun."""
        file = os.open(self.folder / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{run} {step}\n".encode())
        finally:
            os.close(file)

    def steps(self, run: str) -> list[str]:
        """The steps of `run` so far, in their order."""
        try:
            lines = (self.folder / "journal").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] == run]

    def counts(self, run: str) -> Counter[str]:
        """How often each step of `run` began."""
        return Counter(self.steps(run))

    def hold(self, run: str, step: str) -> None:
        """Have `step` of `run` stand still once it has begun."""
        self._held(run, step).touch()

    def let_go(self, run: str, step: str) -> None:
        """Let `step` of `run` go on."""
        self._held(run, step).unlink()

    def held(self, run: str, step: str) -> bool:
        """Whether `step` of `run` is to stand still."""
        return self._held(run, step).exists()

    def stand(self, run: str, step: str) -> None:
        """Stand still in `step` of `run` while that is held."""
        until(lambda: not self.held(run, step), f"{step!r} of {run!r} to be let go")

    def await_step(self, run: str, step: str, times: int = 1) -> None:
        """Wait until `step` of `run` has begun so many times."""
        until(lambda: self.counts(run)[step] >= times, f"{step!r} of {run!r} to begin ({times}x)")

    def _held(self, run: str, step: str) -> Path:
        return self.folder / f"{run}.{step}.held"
