"""The choices that the protocol leaves to its user; a policy that exists is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from remit_gates.errors import UsageError


LONGEST: Final = 1e9
"""Seconds at most, so that every store can add them to its clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the gate does where the protocol leaves a choice.

    Attributes:
        lease: Seconds that a claim lives without a heartbeat; renewed every third.
        on_conflict: `refuse` at once, or `wait` until the run is free.
        wait_timeout: Seconds that a waiting delivery waits at most.
        on_failure: After a run failed, `hold` keeps its answer consumed; `retry` also
            serves a new delivery.
        on_abandoned: After a holder died, `refuse` keeps its pauses closed until
            somebody decides; `serve` lets the next delivery take over.
        on_store_error: When the store cannot answer before the run, `refuse`, or
            `serve` without a claim (a duplicate is then not stopped).
        answers: `any`, or only `bound` ones, which name their pause.
        scope: `resume` gates what continues a run; `run` also keeps two new inputs
            from running on one run at once.
        record_answers: Whether the record also keeps each answer, as JSON text, for the
            audit. Off, it keeps a digest, and nothing of the answer itself.

    Raises:
        UsageError: A value is outside its set or range.
    """

    lease: float = 30.0
    on_conflict: Literal["refuse", "wait"] = "refuse"
    wait_timeout: float = 60.0
    on_failure: Literal["hold", "retry"] = "hold"
    on_abandoned: Literal["refuse", "serve"] = "refuse"
    on_store_error: Literal["refuse", "serve"] = "refuse"
    answers: Literal["any", "bound"] = "any"
    scope: Literal["resume", "run"] = "resume"
    record_answers: bool = False

    def __post_init__(self) -> None:
        for name, least in (("lease", False), ("wait_timeout", True)):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not 0 <= value <= LONGEST or not (value or least):
                raise UsageError(
                    f"Policy({name}={value!r}): {name} is a number of seconds"
                    f" {'of at least' if least else 'greater than'} 0, and at most {LONGEST:g}."
                )
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                choices = " or ".join(repr(choice) for choice in allowed)
                raise UsageError(f"Policy({name}={value!r}): {name} is {choices}.")
        if not isinstance(self.record_answers, bool):
            raise UsageError(
                f"Policy(record_answers={self.record_answers!r}): record_answers is True or False."
            )


_CHOICES: Final[Mapping[str, tuple[str, str]]] = {
    "on_conflict": ("refuse", "wait"),
    "on_failure": ("hold", "retry"),
    "on_abandoned": ("refuse", "serve"),
    "on_store_error": ("refuse", "serve"),
    "answers": ("any", "bound"),
    "scope": ("resume", "run"),
}
