"""The protocol as generators: losers never write, and a stale winner cannot.

Each flow yields operations and is sent their results. It does no I/O, reads no clock and
never sleeps; `_drive` does, once for sync and once for async. A granted claim was
swapped in at the version that was read before the load, so nothing gated happened to the
run in between.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from remit_gates._decide import Granted, Refused, decide, settle, with_receipt, withdraw
from remit_gates._model import (
    Claim,
    Delivery,
    Holder,
    Intent,
    Outcome,
    Phase,
    Reason,
    Record,
    RunKey,
    Snapshot,
)
from remit_gates._ops import Dead, Flow, Load, Now, Read, Renew, Sleep, Swap
from remit_gates._policy import Policy
from remit_gates.errors import (
    ClaimLost,
    OutcomeUnknown,
    RemitError,
    StoreError,
    UsageError,
)


FIRST_POLL: Final = 0.02
"""Seconds before a waiting delivery looks again for the first time; doubled each time."""

LAST_POLL: Final = 1.0
"""Seconds between two looks at the most."""

TRIES: Final = 64
"""Swaps of one flow at the most. Each that fails means that another delivery moved."""


Judge = Callable[[Any, Record], Delivery]
"""What the adapter makes of a delivery, given what was loaded and the record. Pure."""


@dataclass(slots=True)
class Passage:
    """A granted claim while its run goes on. The heartbeat moves `deadline`; everything
    else stays.

    Attributes:
        run: The run.
        before: The record as it was before the claim, for a withdrawal.
        record: The record with the claim, as it stands in the store.
        claim: The claim.
        replaced: The claim of a dead holder that this one took the place of.
        version: The version of `record` in the store, until a late renewal moves it.
        entered: The monotonic clock just before the claim was sent.
        deadline: The monotonic clock at which the lease may have ended.
        loaded: What was loaded for the delivery that was granted.
        delivery: That delivery.
    """

    run: RunKey
    before: Record
    record: Record
    claim: Claim
    replaced: Claim | None
    version: int
    entered: float
    deadline: float
    loaded: Any
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class Denied:
    """A delivery that was refused, with all that a message about it needs.

    Attributes:
        run: The run.
        verdict: Why.
        delivery: The delivery as judged; None when it was refused before the load.
        loaded: What was loaded; None likewise.
        waited: Whether it waited for another delivery first.
        record: The record that it was refused on, where there is one.
    """

    run: RunKey
    verdict: Refused
    delivery: Delivery | None = None
    loaded: Any = None
    waited: bool = False
    record: Record | None = None


def enter(run: RunKey, holder: Holder, policy: Policy, judge: Judge) -> Flow[Passage | Denied]:
    """Read, load, decide, swap; again from the start whenever someone else moved.

    Raises:
        OutcomeUnknown: The claim was sent, and the store did not say whether it landed.
            Nothing ran; if it did land, it lapses with its lease.
        UsageError: The answer does not name its pause, and the policy demands it.
    """
    asked: dict[int, Asked] = {}
    try:
        return (yield from _attempt(run, holder, policy, judge, asked))
    except StoreError as error:
        if not asked:
            raise
        raise OutcomeUnknown(
            f"Run {run}: the claim was sent, and then the store could not say whether it"
            f" landed ({error}). Nothing ran."
        ) from error
    except (Exception, GeneratorExit):
        raise
    except BaseException:
        # Cancelled, or interrupted from the keyboard, while a claim may be on its way.
        yield from _take_back(run, holder, asked)
        raise


Asked = tuple[Granted, Snapshot, Delivery, Any, float]
"""A claim that was sent: the verdict, what it was based on, and when it was sent."""


def _attempt(
    run: RunKey, holder: Holder, policy: Policy, judge: Judge, asked: dict[int, Asked]
) -> Flow[Passage | Denied]:
    """`enter`, which keeps in `asked`, by token, the claims that may have landed."""
    first: Snapshot | None = None
    until: float | None = None
    for _ in range(TRIES):
        snap: Snapshot = yield Read(run)
        claim = snap.record.claim
        if claim is not None and claim.holder == holder and snap.version is not None:
            # Of all that were sent, the one that landed is the one with this token.
            granted, base, delivery, loaded, sent = asked[claim.token]
            # As it stands there: a withdrawal by whoever replaced us has spent a token since.
            granted = replace(granted, record=snap.record)
            return _passage(run, granted, base, delivery, loaded, sent, snap.version, policy)
        if any(base.record != snap.record for _, base, *_ in asked.values()):
            # Sent at an older version, they cannot land any more.
            asked.clear()
        lease_left = yield from _lease(snap)
        first = first or snap
        free = yield from wait(run, policy, snap, lease_left, until)
        if isinstance(free, Denied):
            return free
        snap, lease_left, until = free
        loaded = yield Load()
        delivery = judge(loaded, snap.record)
        if delivery.intent is Intent.ANSWER and policy.answers == "bound" and not delivery.bound:
            raise UsageError(
                f"Run {run}: the answer does not name the pause that it answers, and the"
                " policy is answers='bound'. It was not recorded and nothing ran. Answer by"
                " interrupt id or with a ticket."
            )
        # At the same version, and without having waited, it has only asked twice.
        again = until is not None or first.version != snap.version
        verdict = (_overtaken(first.record, snap.record, delivery) if again else None) or decide(
            snap.record, delivery, lease_left, policy, snap.now
        )
        if isinstance(verdict, Refused):
            # What was loaded, and that the holder is dead, is of a later moment than the
            # record, which may know better by now.
            stale = verdict.reason in (delivery.reason, Reason.ABANDONED)
            if stale and (yield Read(run)).record != snap.record:
                continue
            return Denied(run, verdict, delivery, loaded, until is not None, snap.record)
        sent = yield Now()
        token = verdict.claim.token
        mine = (verdict, snap, delivery, loaded, sent)
        # One with the same token may be on its way, and its lease began when it was sent.
        known = asked.setdefault(token, mine) is not mine
        try:
            version: int | None = yield Swap(run, snap.version, verdict.record, policy.lease, True)
        except OutcomeUnknown:
            continue
        except StoreError:
            if not known:
                # It certainly did not land.
                del asked[token]
            raise
        if version is not None:
            return _passage(run, *mine, version, policy)
        if not known:
            del asked[token]
    if not asked:
        # Others moved each time, so the store is well, and the run is busy.
        return Denied(run, Refused(Reason.IN_PROGRESS, retry_after=LAST_POLL), waited=True)
    raise OutcomeUnknown(
        f"Run {run}: the claim was sent {TRIES} times and the store never said whether it"
        f" landed. Nothing ran. If it did land, it lapses in {policy.lease:g} s."
    )


def wait(
    run: RunKey, policy: Policy, snap: Snapshot, lease_left: float | None, until: float | None
) -> Flow[Denied | tuple[Snapshot, float | None, float | None]]:
    """Look until no claim is alive: what was then seen, what is left of its lease, and
    until when the delivery waits, if it does. Refused where the policy is not to wait, or
    when the time is over."""
    poll = FIRST_POLL
    while lease_left is not None and lease_left > 0:
        denied = Denied(
            run, _in_progress(snap, lease_left), waited=until is not None, record=snap.record
        )
        if policy.on_conflict == "refuse":
            return denied
        now = yield Now()
        until = now + policy.wait_timeout if until is None else until
        if now >= until:
            return denied
        yield Sleep(min(poll, until - now))
        poll = min(poll * 2, LAST_POLL)
        snap = yield Read(run)
        lease_left = yield from _lease(snap)
    return snap, lease_left, until


def leave(passage: Passage, outcome: Outcome | None, applied: bool = False) -> Flow[bool]:
    """Settle the claim with `outcome`, or withdraw it when there is none.

    The swap goes out at the version that entering left; the record is read only when
    that fails. Returns whether the claim was still this passage's own.
    """
    token = passage.claim.token
    record = passage.record
    version: int | None = passage.version
    for _ in range(TRIES):
        until = passage.claim.since + (yield Now()) - passage.entered
        lease: float | None = None
        if outcome is None:
            after = withdraw(record, token, passage.before)
            # A dead holder's claim that was taken over comes back as dead as it was.
            lease = None if passage.before.claim is None else 0.0
        else:
            after = settle(record, token, outcome, until, applied)
        if after is None:
            return _left(record, token, outcome)
        with suppress(OutcomeUnknown):
            if (yield Swap(passage.run, version, after, lease, False)) is not None:
                return True
        snap: Snapshot = yield Read(passage.run)
        record, version = snap.record, snap.version
    return False


def renew(passage: Passage) -> Flow[bool]:
    """Extend the lease; False when the claim is no longer this passage's own.

    A store extends only an unexpired lease, so that whoever read it as expired may take
    over. A holder that comes late must win the swap against them.
    """
    lease = passage.claim.lease
    sent = yield Now()
    if (yield Renew(passage.run, passage.claim.token, lease)):
        passage.deadline = sent + lease
        return True
    for _ in range(TRIES):
        snap = yield Read(passage.run)
        if not _holds(snap.record, passage.claim.holder):
            return False
        sent = yield Now()
        try:
            version = yield Swap(passage.run, snap.version, snap.record, lease, False)
        except OutcomeUnknown:
            continue
        if version is not None:
            passage.deadline = sent + lease
            return True
    return False


def note(passage: Passage, receipt: str) -> Flow[bool]:
    """Keep `receipt` with what the passage answers; False when the claim is no longer
    the passage's own. Extends the lease."""
    lease = passage.claim.lease
    record, version = passage.record, passage.version
    for _ in range(TRIES):
        after = with_receipt(record, passage.claim.token, receipt)
        if after is None:
            return False
        sent = yield Now()
        with suppress(OutcomeUnknown):
            moved: int | None = yield Swap(passage.run, version, after, lease, False)
            if moved is not None:
                passage.record, passage.version, passage.deadline = after, moved, sent + lease
                return True
        snap: Snapshot = yield Read(passage.run)
        if snap.version is None:
            return False
        record, version = snap.record, snap.version
    return False


def fence(passage: Passage) -> Flow[None]:
    """Let a write of the framework through only while the lease is provably alive.

    Raises:
        ClaimLost: The holder was replaced, or the store cannot say that it was not.
    """
    if (yield Now()) < passage.deadline:
        return
    try:
        held = yield from renew(passage)
    except RemitError as error:
        raise ClaimLost(_lost(passage, f"the store cannot renew it ({error})")) from error
    if not held:
        raise ClaimLost(_lost(passage, "another delivery or an operator has taken its place"))


def _lease(snap: Snapshot) -> Flow[float | None]:
    """Seconds left to the active claim; zero when its holder is known to be dead."""
    claim = snap.record.claim
    if claim is None or snap.lease_left is None or snap.lease_left <= 0:
        return snap.lease_left
    return 0.0 if (yield Dead(claim.holder)) else snap.lease_left


def _take_back(run: RunKey, holder: Holder, asked: dict[int, Asked]) -> Flow[None]:
    """Withdraw a claim of which it is not known whether it landed, as far as that goes.

    Where it does not go, the lease takes care of it: what interrupted us is what the
    caller must see.
    """
    if not asked:
        return
    with suppress(RemitError):
        snap: Snapshot = yield Read(run)
        claim = snap.record.claim
        if claim is not None and claim.holder == holder:
            before = asked[claim.token][1].record
            after = replace(before, token=snap.record.token)
            yield Swap(run, snap.version, after, None if before.claim is None else 0.0, False)


def _in_progress(snap: Snapshot, lease_left: float) -> Refused:
    claim = snap.record.claim
    entry = None if claim is None else snap.record.by_token(claim.token)
    return Refused(Reason.IN_PROGRESS, claim, entry, lease_left)


def _overtaken(first: Record, record: Record, delivery: Delivery) -> Refused | None:
    """The refusal of a delivery that names no pause, when another was served since it
    first looked: what it came for is gone."""
    if delivery.bound:
        return None
    if delivery.intent in {Intent.START, Intent.FORK}:
        # New input and a branch came for nothing that could be gone.
        return None
    claim = record.claim
    if claim is not None and first.claim == claim:
        # It waited for a holder that then died. Only what that holder had is what it
        # can have come for.
        named = {answer.pause for answer in delivery.answers}
        if delivery.intent is Intent.CONTINUE or named <= set(claim.pauses):
            return None
        return Refused(Reason.ABANDONED, claim, record.by_token(claim.token))
    if claim is None and record.served == first.served:
        return None
    if claim is not None and record.token == first.token:
        return None
    entry = record.by_token(record.served if claim is None else claim.token)
    if entry is None or delivery.intent is not Intent.ANSWER:
        return Refused(Reason.SUPERSEDED, claim, entry)
    return Refused(Reason.FAILED if entry.phase is Phase.FAILED else Reason.CONSUMED, claim, entry)


def _holds(record: Record, holder: Holder) -> bool:
    return record.claim is not None and record.claim.holder == holder


def _left(record: Record, token: int, outcome: Outcome | None) -> bool:
    """Whether a record without our claim shows that our own settle or withdrawal made it,
    in an attempt of which the answer was lost."""
    entry = record.by_token(token)
    if outcome is None:
        return entry is None and record.token == token
    # Whoever was served next at the same pause has taken the place of what was left there.
    entry = entry or next((old for old in record.earlier if old.token == token), None)
    if entry is not None and entry.outcome is not None:
        return entry.outcome.state != "released"
    # A release leaves the key of what it freed, as only a failure does.
    return record.served == token and bool(record.left) == (outcome.state == "failed")


def _passage(
    run: RunKey,
    granted: Granted,
    base: Snapshot,
    delivery: Delivery,
    loaded: Any,
    sent: float,
    version: int,
    policy: Policy,
) -> Passage:
    return Passage(
        run=run,
        before=base.record,
        record=granted.record,
        claim=granted.claim,
        replaced=granted.replaced,
        version=version,
        entered=sent,
        deadline=sent + policy.lease,
        loaded=loaded,
        delivery=delivery,
    )


def _lost(passage: Passage, why: str) -> str:
    return (
        f"Run {passage.run}: claim {passage.claim.token} is past its lease and {why}. What the"
        " run was about to write was not written. Look at the run's state before going on."
    )
