"""What the kit found out. A clause that could not run is told apart from one that passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class Violation(AssertionError):
    """Raised inside a clause when the store does not keep it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one clause.

    Attributes:
        clause: Its name.
        states: What it demands.
        verdict: `passed`, `failed` or `not run`.
        detail: What was observed instead, or what was missing to run it.
    """

    clause: str
    states: str
    verdict: Literal["passed", "failed", "not run"]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of every clause, in the order in which they ran."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> tuple[str, ...]:
        """Names of the clauses that the store keeps."""
        return self._with("passed")

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the clauses that it breaks."""
        return self._with("failed")

    @property
    def not_run(self) -> tuple[str, ...]:
        """Names of the clauses that the harness had no means to run."""
        return self._with("not run")

    def raise_for_failures(self, *, complete: bool = False) -> None:
        """Raise unless no clause failed.

        Args:
            complete: Also raise if a clause could not run.

        Raises:
            Violation: Its text is the report.
        """
        if self.failed or (complete and self.not_run):
            raise Violation(str(self))

    def __str__(self) -> str:
        lines = [
            (
                f"{len(self.passed)} clauses passed, {len(self.failed)} failed,"
                f" {len(self.not_run)} not run"
            )
        ]
        for result in self.results:
            if result.verdict != "passed":
                lines.append(f"{result.verdict}: {result.clause}: {result.states}")
                lines.append(f"    {result.detail}")
        return "\n".join(lines)

    def _with(self, verdict: str) -> tuple[str, ...]:
        return tuple(result.clause for result in self.results if result.verdict == verdict)
