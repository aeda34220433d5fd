"""The inductive step of "a pause is consumed at most once", for CrossHair: from any record in
which it holds, by any one decision, to one in which it holds.

The functions take integers and booleans, since over those every path can be followed; they
make the record and the delivery of them and call production. What each promises is in its
docstring, in the notation of PEP 316.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from remit_gates._decide import Granted, Refused, Verdict, decide, release, settle, withdraw
from remit_gates._model import (
    Answer,
    Claim,
    Consumption,
    Delivery,
    Holder,
    Intent,
    Outcome,
    Phase,
    Reason,
    Record,
)
from remit_gates._policy import Policy


POLICY = Policy()
CHOSEN = (
    POLICY,
    Policy(on_failure="retry"),
    Policy(on_abandoned="serve"),
    Policy(on_failure="retry", on_abandoned="serve"),
)
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


def live(phase: int, open_: int, asks: int, same: bool, serve: bool, retry: bool) -> bool:
    """Whether a live claim keeps everyone out, under every policy.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 2
    pre: consistent(phase, open_)
    post: __return__
    """
    record = known(phase, open_, True, 5)
    verdict = decide(record, delivery(asks, same), 1.0, chosen(serve, retry), 0.0)
    return isinstance(verdict, Refused) and verdict.reason is Reason.IN_PROGRESS


def policies(
    phase: int, open_: int, active: bool, asks: int, same: bool, serve: bool, retry: bool
) -> bool:
    """Whether an answer to a closed pause is served exactly when the policy says so: never
    when its run ended well; after a failure, to `retry` or to the same message; after a death,
    to `serve`.

    pre: 1 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 1
    post: __return__
    """
    return keeps_to(decide, phase, open_, active, asks, same, serve, retry)


def void(phase: int, open_: int, active: bool, asks: int, serve: bool, retry: bool) -> bool:
    """Whether what the adapter holds for void is refused, whatever the record and the policy.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 2
    pre: consistent(phase, open_)
    post: __return__
    """
    asked = replace(delivery(asks, False), reason=Reason.NOT_PARKED)
    left = 0.0 if active else None
    return isinstance(
        decide(known(phase, open_, active, 5), asked, left, chosen(serve, retry), 0.0), Refused
    )


def adopted(phase: int, open_: int, active: bool, moved: bool) -> bool:
    """Whether a recovery goes on with what did not finish, and with nothing else.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2
    pre: consistent(phase, open_)
    post: __return__
    """
    record = known(phase, open_, active, 5)
    asked = replace(delivery(2, False), moved=moved)
    verdict = decide(record, asked, 0.0 if active else None, POLICY, 0.0)
    unfinished = phase in (1, 3) and open_ == 0
    went_on = isinstance(verdict, Granted) and bool(verdict.claim.pauses)
    return isinstance(verdict, Granted) and went_on == (unfinished and not moved)


def released(phase: int, open_: int, active: bool, alive: bool) -> bool:
    """Whether a release opens what did not finish, leaves what did, and disturbs no live claim.

    pre: 0 <= phase <= 3 and 0 <= open_ <= 2
    pre: consistent(phase, open_)
    post: __return__
    """
    record = known(phase, open_, active, 5)
    after = release(record, (1.0 if alive else 0.0) if active else None, 0.0)
    if isinstance(after, Refused):
        return active and alive and after.reason is Reason.IN_PROGRESS
    finished = phase == 2 and open_ == 0
    return (
        not (active and alive)
        and after.claim is None
        and after.token == record.token
        and (after.closed("p") is not None) == finished
    )


def asked_again(phase: int, open_: int, own: bool, applied: bool) -> bool:
    """Whether a pause that waits when a run ended parked is open, and whether it counts as the
    next question when, and only when, the framework took the answer in.

    pre: 1 <= phase <= 3 and 0 <= open_ <= 2
    post: __return__
    """
    record = known(phase, open_, True, 5)
    if not own:
        record = replace(record, token=6, claim=claimed(6, phase))
    ended = Outcome("parked", waiting=("p",))
    after = settle(record, record.token, ended, 0.0, applied)
    entry = None if after is None else after.consumption("p")
    if after is None or entry is None or after.closed("p") is not None:
        return False
    if open_ > 0:
        return entry.reopened == ("again", "anew")[open_ - 1]
    return entry.reopened == ("anew" if own else "again")


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


def keeps_to(
    by: Decide,
    phase: int,
    open_: int,
    active: bool,
    asks: int,
    same: bool,
    serve: bool,
    retry: bool,
) -> bool:
    """Whether `by` serves an answer exactly when the policy says so."""
    record = known(phase, open_, active, 5)
    left = 0.0 if active else None
    verdict = by(record, delivery(asks, same), left, chosen(serve, retry), 0.0)
    granted = isinstance(verdict, Granted)
    spent = same and (asks == 1 or open_ == 2)
    dead = active and not serve
    if asks == 1 or open_ > 0:
        return granted == (not spent and not dead)
    allowed = (False, serve, False, retry or same)[phase]
    return granted == (allowed and not spent and not dead)


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
    claim = claimed(last, phase) if active else None
    return Record(token=last, served=last, claim=claim, consumptions=entries)


def claimed(token: int, phase: int) -> Claim:
    pauses = ("p",) if phase == 1 else ()
    return Claim(FIRST, token, 1, Intent.ANSWER, pauses, 30.0, 0.0, "p~0")


def chosen(serve: bool, retry: bool) -> Policy:
    """Made before any path is followed, so that the prover has no strings to try."""
    return CHOSEN[2 * serve + retry]


def delivery(asks: int, same: bool) -> Delivery:
    """An answer to the pause, an answer to another one, or a recovery."""
    name = "x" if same else None
    if asks == 2:
        return Delivery(Intent.CONTINUE, SECOND, position="c1")
    return Delivery(Intent.ANSWER, SECOND, (Answer("p" if asks == 0 else "q"),), True, name)
