"""A pause is consumed at most once, by the holder of its run's latest token.

Every decision of the protocol is one of these pure functions from records to records:
no clock, no I/O, no randomness. What time it is, and whether a holder is known to be
dead, comes in as an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from remit_gates._model import (
    Answer,
    Claim,
    Consumption,
    Continuation,
    Delivery,
    Intent,
    Outcome,
    Phase,
    Reason,
    Record,
)
from remit_gates._policy import Policy


@dataclass(frozen=True, slots=True)
class Granted:
    """The delivery may be served once `record` has been swapped in.

    Attributes:
        record: The record with the new claim.
        claim: That claim.
        replaced: The claim of a dead holder that it takes the place of.
    """

    record: Record
    claim: Claim
    replaced: Claim | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The delivery is not to be served, and the record stays as it is.

    Attributes:
        reason: Why.
        claim: The claim in its way.
        consumption: The consumption in its way.
        retry_after: Seconds after which the verdict may be another; None for never.
        same: Whether all the answers are those that were served; None where unknown.
    """

    reason: Reason
    claim: Claim | None = None
    consumption: Consumption | None = None
    retry_after: float | None = None
    same: bool | None = None


Verdict = Granted | Refused


def decide(
    record: Record, delivery: Delivery, lease_left: float | None, policy: Policy, now: float
) -> Verdict:
    """Whether `delivery` may be served on a run of which `record` is all that is known.

    Args:
        record: The record as read, before what is parked was loaded.
        delivery: The delivery as its adapter judged it against what was loaded.
        lease_left: Seconds left to the active claim; zero or less when it has expired
            or its holder is known to be dead.
        policy: The choices that the protocol leaves open.
        now: The store's clock when the record was read.
    """
    active = record.claim
    if active is not None and lease_left is not None and lease_left > 0:
        return Refused(
            Reason.IN_PROGRESS, active, record.by_token(active.token), retry_after=lease_left
        )
    if delivery.id is not None:
        used = tuple(entry for entry in record.consumptions if entry.delivery == delivery.id)
        if _spent(record, delivery, used):
            return Refused(Reason.CONSUMED, active, used[-1] if used else None)
    disturbed = delivery.disturbs if delivery.intent is Intent.ANSWER else ()
    for entry in (
        *(record.closed_to(answer) for answer in delivery.answers),
        *(record.closed(pause) for pause in disturbed),
    ):
        closed = None if entry is None else _closed(entry, delivery, policy)
        if closed is not None:
            return Refused(closed, active, entry, same=_same(record, delivery))
    if delivery.reason is not None:
        return _void(record, delivery, delivery.reason)
    # A continue that only goes on is its caller's own recovery.
    decides = delivery.intent is Intent.ANSWER or delivery.answers
    if active is not None and decides and policy.on_abandoned == "refuse":
        return Refused(Reason.ABANDONED, active, record.by_token(active.token))
    return _grant(record, delivery, policy, now)


def _void(record: Record, delivery: Delivery, reason: Reason) -> Refused:
    """The refusal of what the adapter holds for void, unless the record knows better what
    became of its pauses."""
    closed = (record.closed_to(answer) for answer in delivery.answers)
    entry = next((entry for entry in closed if entry is not None), None)
    if entry is None or reason is not Reason.NOT_PARKED:
        return Refused(reason, record.claim)
    known = Reason.FAILED if entry.phase is Phase.FAILED else Reason.CONSUMED
    return Refused(known, record.claim, entry, same=_same(record, delivery))


def _spent(record: Record, delivery: Delivery, used: tuple[Consumption, ...]) -> bool:
    """Whether the id of `delivery` did its work already: a redelivered message never answers
    the next question, even one of the same name, and never goes on twice."""
    if not used:
        return delivery.id in record.spent
    goes_on = delivery.intent is Intent.CONTINUE and not delivery.moved
    if goes_on and any(entry in record.unfinished for entry in used):
        return False
    asked = {entry.pause for entry in used}
    return asked != {answer.pause for answer in delivery.answers} or any(
        entry.reopened == "anew" for entry in used
    )


def _same(record: Record, delivery: Delivery) -> bool | None:
    """Whether every answer of `delivery` is the one that was served; None where that is
    unknown."""
    known = True
    for answer in delivery.answers:
        entry = record.closed_to(answer)
        if entry is None:
            return False
        equal = _equal(answer, entry)
        if equal is False:
            return False
        known = known and equal is True
    return True if known and delivery.answers else None


def same_as_served(record: Record, delivery: Delivery) -> bool | None:
    """Whether the answer that is being served is that of `delivery`; None where the two are
    for different pauses, or it is unknown."""
    known = all(record.closed_to(answer) is not None for answer in delivery.answers)
    return _same(record, delivery) if known else None


def _equal(answer: Answer, entry: Consumption) -> bool | None:
    """Whether `answer` is the one that `entry` was answered with; None where either has no
    digest."""
    if answer.digest is None or entry.digest is None:
        return None
    return answer.digest == entry.digest


def _closed(entry: Consumption, delivery: Delivery, policy: Policy) -> Reason | None:
    """Why `entry` keeps its pause closed to `delivery`; None if another attempt is due."""
    if entry.phase is Phase.SETTLED:
        return Reason.CONSUMED
    if entry.phase is Phase.FAILED:
        # Another answer under the same id is another message, whatever its sender thinks.
        redelivered = (
            delivery.id is not None
            and delivery.id == entry.delivery
            and not any(
                answer.pause == entry.pause and _equal(answer, entry) is False
                for answer in delivery.answers
            )
        )
        return None if redelivered or policy.on_failure == "retry" else Reason.FAILED
    return None if policy.on_abandoned == "serve" else Reason.ABANDONED


def _grant(record: Record, delivery: Delivery, policy: Policy, now: float) -> Granted:
    """The record in which `delivery` holds the claim, with the next token."""
    # Tokens start at the store's clock in milliseconds: a record that was deleted and
    # made anew must not hand out a token that an earlier holder still carries.
    token = max(record.token + 1, int(now * 1000))
    entries = tuple(_consume(record, delivery, answer, token, now) for answer in delivery.answers)
    # What only goes on has the key of where it does, whether or not a ticket binds it.
    own = 0
    if delivery.intent is Intent.CONTINUE:
        own = len(entries)
        answered = {entry.pause for entry in entries}
        entries += tuple(
            _adopt(entry, delivery, token, now)
            for entry in (() if delivery.moved else record.unfinished)
            if entry.pause not in answered
        )
    for pause in delivery.disturbs:
        entry = record.consumption(pause)
        if entry is not None and not any(pause == other.pause for other in entries):
            entries = (*entries, _adopt(entry, delivery, token, now))
    after = record
    again = bool(entries)
    for entry in entries:
        before = record.consumption(entry.pause)
        again = again and before is not None and before.token == record.last
        if before is not None and before.delivery != entry.delivery:
            after = after.with_spent(before.delivery)
        after = after.with_consumption(entry)
    # What goes on with the last claim's work goes on under its key.
    left = record.left if record.claim is None else record.claim.key
    goes_on = delivery.intent is Intent.CONTINUE or (again and delivery.intent is Intent.ANSWER)
    resumes = goes_on and not delivery.moved
    owed = record.owed if record.claim is None else record.claim.delivery
    over = goes_on or delivery.moved
    if over and owed != delivery.id and (owed is None or record.by_delivery(owed) is None):
        after = after.with_spent(owed)
    claim = Claim(
        holder=delivery.holder,
        token=token,
        attempt=max((entry.attempt for entry in entries), default=1),
        intent=delivery.intent,
        pauses=tuple(entry.pause for entry in entries),
        lease=policy.lease,
        since=now,
        key=(resumes and left) or _key(entries[own:], delivery, token),
        delivery=delivery.id,
        actor=delivery.actor,
        position=delivery.position,
    )
    return Granted(replace(after, token=token, claim=claim), claim, record.claim)


def _consume(
    record: Record, delivery: Delivery, answer: Answer, token: int, now: float
) -> Consumption:
    generation, attempt, taken = 0, 1, answer.taken
    before = record.consumption(answer.pause)
    if before is not None and before.reopened == "anew":
        generation = before.generation + 1
    elif before is not None:
        generation, attempt = before.generation, before.attempt + 1
        # What an earlier attempt left in that list is not part of it.
        taken = before.taken
    return Consumption(
        pause=answer.pause,
        generation=generation,
        token=token,
        attempt=attempt,
        phase=Phase.RUNNING,
        digest=answer.digest,
        delivery=delivery.id,
        actor=delivery.actor,
        holder=delivery.holder,
        since=now,
        taken=taken,
        answer=answer.text,
    )


def _adopt(entry: Consumption, delivery: Delivery, token: int, now: float) -> Consumption:
    """`entry` as the next attempt, which goes on with the answer that is recorded."""
    return replace(
        entry,
        token=token,
        attempt=entry.attempt + 1,
        phase=Phase.RUNNING,
        holder=delivery.holder,
        until=None,
        outcome=None,
        reopened=None,
        continued=Continuation(now, delivery.id, delivery.actor),
    )


def _key(entries: tuple[Consumption, ...], delivery: Delivery, token: int) -> str:
    """What names the work of a claim, the same for every attempt at it."""
    if entries:
        return " ".join(sorted(f"{entry.pause}~{entry.generation}" for entry in entries))
    return f"@{delivery.position}" if delivery.position else f"#{token}"


def settle(
    record: Record, token: int, outcome: Outcome, until: float, applied: bool
) -> Record | None:
    """The record after the run of the claim with `token` ended in `outcome`.

    A run that ended parked re-opens every pause that then waits, whatever an earlier
    attempt left behind. None when the claim is no longer the active one.
    """
    claim = record.claim
    if claim is None or claim.token != token:
        return None
    phase = Phase.FAILED if outcome.state == "failed" else Phase.SETTLED
    entries = []
    for entry in record.consumptions:
        waits = outcome.state == "parked" and entry.pause in outcome.waiting and not entry.reopened
        if entry.token == token:
            # Where the framework took the answer in, now or in an earlier attempt, what
            # waits under the same name is the next question; else the old one, asked again.
            mine = claim.intent is Intent.ANSWER and entry.since == claim.since
            took = mine or entry.applied or (applied and claim.intent is Intent.CONTINUE)
            asked: Literal["again", "anew"] = "anew" if took else "again"
            entry = replace(
                entry,
                phase=phase,
                until=until,
                outcome=outcome,
                applied=entry.applied or applied,
                reopened=asked if waits else entry.reopened,
                # Whoever has the run's end has no use for it.
                receipt=entry.receipt if phase is Phase.FAILED else None,
            )
        elif waits:
            entry = replace(entry, reopened="again")
        entries.append(entry)
    failed = outcome.state == "failed"
    after = replace(
        record,
        served=token,
        left=claim.key if failed else "",
        owed=claim.delivery if failed else None,
        began=claim.position if failed else "",
        claim=None,
        consumptions=tuple(entries),
    )
    known = failed or claim.delivery is None or after.by_delivery(claim.delivery) is not None
    return after if known else after.with_spent(claim.delivery)


def with_receipt(record: Record, token: int, receipt: str) -> Record | None:
    """The record in which what the claim with `token` answers has `receipt`; None when that
    claim is no longer the active one."""
    if record.claim is None or record.claim.token != token:
        return None
    entries = tuple(
        replace(entry, receipt=receipt) if entry.token == token else entry
        for entry in record.consumptions
    )
    return replace(record, consumptions=entries)


def withdraw(record: Record, token: int, before: Record) -> Record | None:
    """The record as if the claim with `token` had never been: `before`, but the token
    stays spent. None when the claim is no longer the active one."""
    if record.claim is None or record.claim.token != token:
        return None
    return replace(before, token=record.token)


def release(
    record: Record,
    lease_left: float | None,
    now: float,
    *,
    pause: str | None = None,
    actor: str | None = None,
    detail: str | None = None,
) -> Record | Refused:
    """The record in which what did not finish may be answered again.

    Args:
        record: The record as read.
        lease_left: As for `decide`; a live claim is refused.
        now: The store's clock.
        pause: Only this pause; None for every unfinished one.
        actor: Who releases.
        detail: Why.
    """
    if record.claim is not None and lease_left is not None and lease_left > 0:
        return Refused(Reason.IN_PROGRESS, record.claim, retry_after=lease_left)
    if pause is not None and record.closed(pause) is None:
        return record
    outcome = Outcome("released", detail=detail, actor=actor)
    entries = tuple(
        _released(entry, outcome, now)
        if entry.phase is not Phase.SETTLED and not entry.reopened and pause in (None, entry.pause)
        else entry
        for entry in record.consumptions
    )
    if record.claim is not None:
        dead = record.claim
        if record.by_token(dead.token) is None:
            # It answered nothing, so that nothing else would tell of the release.
            record = record.with_earlier(_without_pause(dead, outcome, now))
        record = replace(
            record,
            served=dead.token,
            left=dead.key,
            owed=dead.delivery,
            began=dead.position,
            claim=None,
        )
    return replace(record, consumptions=entries)


def _released(entry: Consumption, outcome: Outcome, now: float) -> Consumption:
    """`entry`, released; what became of it before stays known."""
    before = entry.outcome
    if before is not None:
        outcome = replace(outcome, position=before.position, error=before.detail, ended=entry.until)
    return replace(entry, phase=Phase.FAILED, until=now, outcome=outcome, reopened="again")


def _without_pause(claim: Claim, outcome: Outcome, now: float) -> Consumption:
    return Consumption(
        pause="",
        generation=0,
        token=claim.token,
        attempt=claim.attempt,
        phase=Phase.FAILED,
        digest=None,
        delivery=claim.delivery,
        actor=claim.actor,
        holder=claim.holder,
        since=claim.since,
        until=now,
        outcome=outcome,
    )
