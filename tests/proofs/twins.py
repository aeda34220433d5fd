"""Protocols that differ from ours in one point, each of which breaks an invariant: a proof
that cannot fail proves nothing, and every point of the protocol is there for one of these.

A twin wraps a production function; nothing of the protocol is written a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from remit_gates import _passage
from remit_gates._decide import Granted, Verdict, decide
from remit_gates._model import Delivery, Holder, Outcome, Record, RunKey
from remit_gates._ops import Flow, Load, Op, Swap
from remit_gates._passage import Denied, Judge, Passage, enter, leave
from remit_gates._policy import Policy
from remit_gates.langgraph import _pauses
from tests.proofs import adapters, ground
from tests.proofs.flows import ANY
from tests.proofs.ground import SOUND, Faults
from tests.proofs.others import PydanticGraphScenario
from tests.proofs.scenarios import BARE, NEXT, SENT, SENT_AGAIN, SERVE, TWIN, A
from tests.proofs.world import Scenario


def load_first(run: RunKey, holder: Holder, policy: Policy, judge: Judge) -> Flow[Passage | Denied]:
    """Load what is parked, and read the record only then."""
    loaded = yield Load()
    flow = enter(run, holder, policy, judge)
    result: Any = None
    while True:
        try:
            op = flow.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        result = loaded if isinstance(op, Load) else (yield op)


def leave_blindly(passage: Passage, outcome: Outcome | None, applied: bool = False) -> Flow[bool]:
    """Settle whatever has become of the claim."""
    flow = leave(passage, outcome, applied)
    result: Any = None
    while True:
        try:
            op: Op = flow.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        result = yield replace(op, expected=ANY) if isinstance(op, Swap) else op


def decide_without_token(
    record: Record, delivery: Delivery, lease_left: float | None, policy: Policy, now: float
) -> Verdict:
    """Take a dead holder's claim over with the dead holder's token."""
    verdict = decide(record, delivery, lease_left, policy, now)
    if not isinstance(verdict, Granted) or verdict.replaced is None:
        return verdict
    new, token = verdict.claim.token, verdict.replaced.token
    claim = replace(verdict.claim, token=token)
    entries = tuple(
        replace(entry, token=token) if entry.token == new else entry
        for entry in verdict.record.consumptions
    )
    taken = replace(verdict.record, token=token, claim=claim, consumptions=entries)
    return replace(verdict, record=taken, claim=claim)


def takes_bare_for_bound(patch: pytest.MonkeyPatch) -> None:
    judged = _pauses.judge
    patch.setattr(_pauses, "judge", lambda *args: replace(judged(*args), bound=True))


def nothing(patch: pytest.MonkeyPatch) -> None:
    """The protocol as it is."""


def loads_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ground, "enter", load_first)


def keeps_no_ledger(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Record, "closed", lambda record, pause: None)


def both(patch: pytest.MonkeyPatch) -> None:
    loads_first(patch)
    keeps_no_ledger(patch)


def reuses_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_passage, "decide", decide_without_token)


def settles_blindly(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ground, "leave", leave_blindly)


@dataclass(frozen=True)
class Twin:
    """Attributes:
    scenario: Where it breaks.
    breach: The invariant that breaks; None for none.
    steps: How many steps it takes at least.
    last: What the last of them is.
    patch: How it differs.
    faults: How its store does.
    """

    scenario: Scenario
    breach: str | None = None
    steps: int = 0
    last: str = ""
    patch: Callable[[pytest.MonkeyPatch], None] = nothing
    faults: Faults = SOUND


RACE: Final = Scenario((A, TWIN))
TAKEOVER: Final = Scenario((A, TWIN), SERVE)

TWINS: Final[dict[str, Twin]] = {
    "a swap without a version": Twin(
        RACE,
        "(a) pause P was consumed twice",
        8,
        "B: entering swaps in [token 1 of B; p running by B]",
        faults=Faults(unchecked=True),
    ),
    "load before read, and no ledger": Twin(
        RACE,
        "(a) pause P was consumed twice",
        14,
        "B: entering swaps in [token 2 of B; p running by B]",
        both,
    ),
    "takeover without a new token": Twin(
        TAKEOVER,
        "(f) a write of a replaced holder landed",
        13,
        "A: fence renews",
        reuses_tokens,
    ),
    "a renewal of a lease that has ended": Twin(
        TAKEOVER,
        "(d) two holders at once",
        13,
        "B: entering swaps in [token 2 of B; p running by B]",
        faults=Faults(revives=True),
    ),
    "an adapter that takes a bare answer for a bound one": Twin(
        adapters.LangGraphScenario((A, BARE)),
        "(c) a bare answer that had looked at P was applied at Q",
        21,
        "R: runs the node of Q",
        takes_bare_for_bound,
    ),
    "settling without a version": Twin(
        Scenario((A, NEXT), SERVE),
        "(i) the last token went back",
        15,
        "A: leaving swaps in [free; p settled by A]",
        settles_blindly,
    ),
}

HARMLESS: Final[dict[str, Twin]] = {
    "load before read, with the ledger": Twin(RACE, patch=loads_first),
    "no ledger, but read before load": Twin(RACE, patch=keeps_no_ledger),
}
"""Either of the two is enough against a late duplicate; the protocol has both."""

LIMITS: Final[dict[str, Twin]] = {
    "a bare answer that comes late": Twin(
        Scenario((A, BARE), bare_too=True),
        "(c) R's answer was applied at Q",
        17,
        "R: runs the node of Q",
    ),
    "a stall between the fence and the write": Twin(
        Scenario((A, TWIN), SERVE, stalls=True),
        "(f) a write of a replaced holder landed",
        12,
        "A: writes",
    ),
    "a graph run that died between two nodes, gone on with by who was shown the first": Twin(
        PydanticGraphScenario((A, TWIN), SERVE),
        "(c) B's answer was applied at Q",
        16,
        "B: runs the node of Q",
    ),
    "takeover where two questions have one name": Twin(
        Scenario((SENT, SENT_AGAIN), SERVE, pauses=("p", "p")),
        "(c) Y's answer was applied at Q",
        16,
        "Y: runs the node of Q",
    ),
}
"""What the protocol as it is does not prevent, and the guarantees do not claim: an answer
that names no question; a write that the framework's own store does not fence; a name that
stands for two questions, when the holder died between them and nobody is asked; and the
nodes of a pydantic-graph run, which all go on under the pause that its dead holder answered."""
