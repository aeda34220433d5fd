"""What is proved: scenarios small enough to visit whole, each about one kind of trouble, and
together about every pair of kinds that meet in a run with two pauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from remit_gates._model import Intent
from remit_gates._policy import Policy
from tests.proofs.world import TICKS, Q, Scenario, Spec


A: Final = Spec("A")
TWIN: Final = Spec("B")
"""The same answer to the same pause, from another process."""
NEXT: Final = Spec("N", meant=Q)
BARE: Final = Spec("R", bound=False)
GO_ON: Final = Spec("C", Intent.CONTINUE, bound=False)
SENT: Final = Spec("X", id="x")
SENT_AGAIN: Final = Spec("Y", id="x")


@dataclass(frozen=True)
class Case:
    """A scenario, and ends that must be among the ones reached: a proof about worlds in
    which nobody is ever served would hold as well.

    Attributes:
        scenario: The scenario.
        served: The names of deliveries that can be served to the end.
        ends: Other ends, each a name and what its flow said.
    """

    scenario: Scenario
    served: str
    ends: frozenset[tuple[str, str]] = frozenset()

    @property
    def expected(self) -> set[tuple[str, str]]:
        return {(name, "left: True") for name in self.served} | self.ends


def policy(**choices: Any) -> Policy:
    return Policy(lease=float(TICKS), **choices)


def ends(**reasons: str) -> frozenset[tuple[str, str]]:
    return frozenset((name, end) for name, words in reasons.items() for end in words.split())


SERVE: Final = policy(on_abandoned="serve")
EAGER: Final = policy(on_abandoned="serve", on_failure="retry")

PROOFS: Final[dict[str, Case]] = {
    "four deliveries, one of them a recovery": Case(
        Scenario((A, TWIN, NEXT, GO_ON), ticks=False, crashes=1),
        "ABNC",
        ends(A="consumed in_progress", N="not_parked in_progress", C="superseded"),
    ),
    "four deliveries, one of them bare": Case(
        Scenario((A, TWIN, NEXT, BARE), ticks=False),
        "ABNR",
        ends(R="consumed in_progress"),
    ),
    "two racers, lost acknowledgements": Case(
        Scenario((A, TWIN), crashes=1, losses=1), "AB", ends(A="abandoned", B="abandoned")
    ),
    "a recovery, lost acknowledgements": Case(
        Scenario((A, GO_ON), crashes=1, losses=1), "AC", ends(A="abandoned in_progress")
    ),
    "a store that comes and goes": Case(
        Scenario((A, TWIN), losses=1, outages=True),
        "AB",
        ends(A="StoreUnavailable OutcomeUnknown"),
    ),
    "a store whose clock moves": Case(Scenario((A, GO_ON), ticks=False, losses=2, drift=1), "AC"),
    "interrupts from the keyboard": Case(
        Scenario((A, GO_ON), crashes=1, interrupts=1), "AC", ends(A="KeyboardInterrupt")
    ),
    "interrupts while taking over": Case(
        Scenario((A, TWIN), SERVE, interrupts=1), "AB", ends(B="KeyboardInterrupt")
    ),
    "nodes that raise, runs withdrawn": Case(Scenario((A, GO_ON), crashes=1, falters=True), "AC"),
    "nodes that raise, with a loss": Case(
        Scenario((A, TWIN), losses=1, falters=True), "AB", ends(A="failed", B="failed")
    ),
    "heartbeats": Case(Scenario((A, TWIN), beats=1, durable=False), "AB", ends(B="in_progress")),
    "answers stored only at the end": Case(Scenario((A, GO_ON), crashes=1, durable=False), "AC"),
    "takeover": Case(Scenario((A, TWIN), SERVE, crashes=1), "AB", ends(A="consumed")),
    "takeover by the next answer": Case(Scenario((A, NEXT), SERVE, crashes=1, losses=1), "AN"),
    "takeover after a failure": Case(Scenario((A, TWIN), EAGER, crashes=1, falters=True), "AB"),
    "an operator": Case(Scenario((A, TWIN), releases=1), "AB"),
    "an operator and a recovery": Case(Scenario((A, GO_ON), releases=1), "AC"),
    "an operator, a loss": Case(Scenario((A,), releases=1, losses=1), "A"),
    "a bare answer waits": Case(
        Scenario((A, BARE), policy(on_conflict="wait"), releases=1, durable=False),
        "AR",
        ends(R="consumed failed"),
    ),
    "a bare answer waits to take over": Case(
        Scenario((A, BARE), policy(on_conflict="wait", on_abandoned="serve"), durable=False),
        "AR",
        ends(R="consumed abandoned"),
    ),
    "a bare answer, a loss": Case(Scenario((A, BARE), SERVE, losses=1, durable=False), "AR"),
    "only bound answers": Case(
        Scenario((A, BARE), policy(answers="bound"), bare_too=True), "A", ends(R="UsageError")
    ),
    "a redelivery to the next question of one name": Case(
        Scenario((SENT, SENT_AGAIN), pauses=("p", "p"), crashes=1, losses=1), "XY"
    ),
}
