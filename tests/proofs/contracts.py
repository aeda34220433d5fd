"""The inductive step of "a pause is consumed at most once", for CrossHair: from any record in
which it holds, by any one decision, to one in which it holds.

The functions take integers and booleans, since over those every path can be followed; they
make the record and the delivery of them and call production. What each promises is in its
docstring, in the notation of PEP 316.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from remit_gates._decide import Granted, Verdict, decide, settle, withdraw
from remit_gates._model import (
    Answer,
    Claim,
    Consumption,
    Delivery,
    Holder,
    Intent,
    Outcome,
    Phase,
    Record,
)
from remit_gates._policy import Policy


POLICY = Policy()
FIRST = Holder("host", 1, "0", "first")
SECOND = Holder("host", 2, "0", "second")

Decide = Callable[[Record, Delivery, "float | None", Policy, float], Verdict]


def consumed(phase: int, open_: int, active: bool, alive: bool, asks: int, same: bool) -> int:
    """How many answers to one pause were ever taken, after one more delivery came.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 2
    pre: consistent(phase, open_)
    post: 0 <= __return__ <= 1
    """
    return count(decide, phase, open_, active, alive, asks, same)


def token(last: int, active: bool, asks: int) -> int:
    """By how much the token grows with a grant.

    pre: last >= 1 and 0 <= asks <= 2
    post: __return__ >= 1
    """
    verdict = decide(known(0, 0, active, last), delivery(asks, False), 0.0, POLICY, 0.0)
    return verdict.record.token - last if isinstance(verdict, Granted) else 1


def closed_after(phase: int, open_: int, failed: bool, own: bool) -> bool:
    """Whether a closed pause stays closed when a run ends that does not ask it again, and
    an open one is not closed by it.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2
    pre: consistent(phase, open_)
    post: __return__
    """
    record = known(phase, open_, True, 5)
    outcome = Outcome("failed" if failed else "finished")
    after = settle(record, 5 if own else 4, outcome, 0.0, True)
    if after is None:
        return not own
    return (record.closed("p") is None) == (after.closed("p") is None) and after.claim is None


def withdrawn(phase: int, open_: int, active: bool, asks: int) -> bool:
    """Whether a claim that is withdrawn leaves nothing behind but a spent token.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 2
    pre: consistent(phase, open_)
    post: __return__
    """
    before = known(phase, open_, active, 5)
    verdict = decide(before, delivery(asks, False), 0.0, POLICY, 0.0)
    if not isinstance(verdict, Granted):
        return True
    after = withdraw(verdict.record, verdict.claim.token, before)
    return (
        after is not None
        and after.token > before.token
        and after.claim == before.claim
        and after.consumptions == before.consumptions
    )


def consistent(phase: int, open_: int) -> bool:
    """Whether a record may look like this: what was never answered was not re-opened."""
    return phase > 0 or open_ == 0


def count(
    by: Decide, phase: int, open_: int, active: bool, alive: bool, asks: int, same: bool
) -> int:
    """The answers taken before, and one more if `by` grants one that is not a redelivery of
    the answer that failed."""
    record = known(phase, open_, active, 5)
    left = (1.0 if alive else 0.0) if active else None
    verdict = by(record, delivery(asks, same), left, POLICY, 0.0)
    before = 0 if record.closed("p") is None else 1
    new = isinstance(verdict, Granted) and asks == 0 and not (same and phase == 3)
    return before + (1 if new else 0)


def known(phase: int, open_: int, active: bool, last: int) -> Record:
    """A record of one pause: never answered, running, settled or failed; closed, open again
    or open anew; with a claim or without."""
    reopened: Literal["again", "anew"] | None = None
    if open_ == 1:
        reopened = "again"
    elif open_ == 2:
        reopened = "anew"
    entries: tuple[Consumption, ...] = ()
    if phase > 0:
        made = Phase.RUNNING if phase == 1 else Phase.SETTLED if phase == 2 else Phase.FAILED
        entries = (
            Consumption("p", 0, last, 1, made, None, "x", None, FIRST, 0.0, reopened=reopened),
        )
    claim = None
    if active:
        pauses = ("p",) if phase == 1 else ()
        claim = Claim(FIRST, last, 1, Intent.ANSWER, pauses, 30.0, 0.0, "p~0")
    return Record(token=last, served=last, claim=claim, consumptions=entries)


def delivery(asks: int, same: bool) -> Delivery:
    """An answer to the pause, an answer to another one, or a recovery."""
    name = "x" if same else None
    if asks == 2:
        return Delivery(Intent.CONTINUE, SECOND, position="c1")
    return Delivery(Intent.ANSWER, SECOND, (Answer("p" if asks == 0 else "q"),), True, name)
