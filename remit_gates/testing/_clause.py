"""A clause is a flow of operations with a sentence that says what it demands; it is written
once for stores of both colours."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from remit_gates._model import Claim, Holder, Intent, Record, RunKey
from remit_gates.testing._report import Violation


Flow = Generator[Any, Any, None]

RACERS: Final = 8


@dataclass(frozen=True, slots=True)
class Clause:
    """One demand on a store.

    Attributes:
        name: Its name.
        states: What it demands.
        flow: The flow that finds out; raises `Violation` if the store does not keep it.
        needs: The method of the harness without which it cannot run.
    """

    name: str
    states: str
    flow: Callable[[], Flow]
    needs: str | None = None


def clause(needs: str | None = None) -> Callable[[Callable[[], Flow]], Clause]:
    """Makes a flow a clause, which its docstring states."""

    def made(flow: Callable[[], Flow]) -> Clause:
        states = " ".join((flow.__doc__ or "").split())
        return Clause(flow.__name__, states, flow, needs)

    return made


def demand(held: object, otherwise: str) -> None:
    """Raise a `Violation` saying `otherwise` unless `held`."""
    if not held:
        raise Violation(otherwise)


def refused(result: object, kind: type[BaseException]) -> bool:
    """Whether `result` is an error of `kind`."""
    return isinstance(result, kind)


def fresh(run: str = "run") -> RunKey:
    """A run that no other clause and no earlier check has used."""
    return RunKey(f"kit-{uuid.uuid4().hex}", "", run)


def claimed(token: int, nonce: str = "nonce") -> Record:
    """A record with an active claim."""
    holder = Holder("host", 1, "start", nonce)
    claim = Claim(holder, token, 1, Intent.ANSWER, ("pause",), 30.0, 1.0, "key")
    return Record(token=token, claim=claim)


def settled(token: int) -> Record:
    """A record without a claim."""
    return Record(token=token, served=token)
