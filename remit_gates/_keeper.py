"""A claim is held from the swap that granted it until the run has ended and said so.

The keeper is the protocol with its surroundings: events, the heartbeat, and the policy
on a store that does not answer. Its methods are flows again, so that all this exists
once for both colours.
"""

from __future__ import annotations

import functools
import os
import time
from typing import Final

from remit_gates import _telling
from remit_gates._claim import ActiveClaim
from remit_gates._decide import Refused, decide
from remit_gates._decide import release as decide_release
from remit_gates._drive import drive
from remit_gates._heartbeat import HEARTBEAT
from remit_gates._history import Attempt, attempts
from remit_gates._model import Holder, Outcome, Record, RunKey
from remit_gates._observe import Event, claiming, tell
from remit_gates._ops import Dead, Flow, Load, Now, Read, Swap
from remit_gates._passage import TRIES, Denied, Judge, Passage, enter, fence, leave, note, renew
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates.errors import (
    ClaimLost,
    OutcomeUnknown,
    RemitError,
    StoreUnavailable,
)
from remit_gates.stores import AsyncStore, Store


GIVE_UP: Final = 600.0
"""Seconds after which a run whose end could not be written down is left to its lease."""


class Keeper:
    """Admits deliveries to runs and sees their claims through to the end.

    Args:
        store: Where the records are.
        policy: The user's choices.
    """

    def __init__(self, store: Store | AsyncStore, policy: Policy) -> None:
        self.store = store
        self.policy = policy

    @functools.cached_property
    def renewer(self) -> Store:
        """What the heartbeat, and every check outside a flow, goes through."""
        return self.store.renewer()

    def admit(self, run: RunKey, holder: Holder, judge: Judge) -> Flow[ActiveClaim | Denied]:
        """Enter the run; the claim is renewed until it is dismissed.

        Raises:
            StoreError, OutcomeUnknown, UsageError: As for `enter`; nothing ran.
        """
        claiming(run)
        began = time.monotonic()
        try:
            entered = yield from enter(run, holder, self.policy, judge)
        except StoreUnavailable as error:
            if self.policy.on_store_error == "serve":
                return (yield from self._ungated(run, judge, error, began))
            _telling.undecided(run, began, error)
            raise StoreUnavailable(
                f"{run} could not be claimed: {error} Nothing ran and nothing was"
                " recorded. Deliver again when the store answers."
            ) from error
        except GeneratorExit:
            raise
        except BaseException as error:
            _telling.undecided(run, began, error)
            raise
        if isinstance(entered, Denied):
            _telling.refused(entered, began)
            return entered
        claim = ActiveClaim(self, entered)
        HEARTBEAT.add(claim.beat, self.policy.lease / 3)
        try:
            _telling.granted(entered, began)
        except BaseException:
            # Interrupted from the keyboard, and nothing ran.
            yield from self.dismiss(claim, None)
            raise
        return claim

    def dismiss(self, claim: ActiveClaim, outcome: Outcome | None) -> Flow[None]:
        """Settle the claim with `outcome`, or withdraw it when there is none.

        Never fails: a run has ended as it has, whatever the store says. What cannot be
        written now is tried again by the heartbeat.
        """
        if claim._left or not claim.guarded or os.getpid() != claim._pid:
            return
        claim._left = True
        HEARTBEAT.remove(claim.beat)
        try:
            kept = yield from leave(claim.passage, outcome, claim._applied)
        except GeneratorExit:
            raise
        except BaseException as error:
            _telling.troubled("unsettled", claim.passage, error)
            job = _Unsettled(self, claim, outcome)
            HEARTBEAT.add(job, self.policy.lease / 9)
            if not isinstance(error, Exception):
                raise
        else:
            _ended(claim, outcome, kept)

    def note(self, claim: ActiveClaim, receipt: str) -> Flow[None]:
        """Keep what the effects of `claim` returned, for whoever goes on after it failed.

        Raises:
            ClaimLost: It is not held any more.
            StoreError: The store does not answer.
        """
        if claim.guarded and not (yield from note(claim.passage, receipt)):
            raise ClaimLost(
                f"{claim.run}: claim {claim.token} was taken over, so what its effects returned"
                " was not kept. Look at the run's state before going on."
            )

    def fence(self, claim: ActiveClaim) -> Flow[None]:
        """Return only while `claim` is provably held.

        Raises:
            ClaimLost: It is not, or that cannot be known.
        """
        if not claim.guarded:
            return
        if claim._left or os.getpid() != claim._pid:
            raise ClaimLost(
                f"{claim.run}: claim {claim.token} belongs to a run that has ended, or to the"
                " process that this one was forked from. Nothing was written."
            )
        yield from fence(claim.passage)

    def beat(self, claim: ActiveClaim) -> float | None:
        """Renew the lease of `claim`; the seconds until the next time, None if never."""
        if claim._left:
            return None
        try:
            held = drive(renew(claim.passage), StorePort(self.renewer))
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, beat again
            _telling.troubled("renewal_failed", claim.passage, error)
            return self.policy.lease / 9
        if held:
            return self.policy.lease / 3
        if not claim._left:
            claim._lost = True
            _telling.ended(claim.passage, None, kept=False)
        return None

    def release(
        self,
        run: RunKey,
        pause: str | None,
        actor: str | None,
        reason: str | None,
        seen: Record | None = None,
    ) -> Flow[bool | Denied]:
        """Re-open what did not finish; whether there was anything to re-open.

        Raises:
            RemitError: The record is another than the one that was `seen`.
        """
        for _ in range(TRIES):
            snap = yield Read(run)
            if seen is not None and snap.record != seen:
                raise RemitError(
                    f"{run} changed since it was looked at. Nothing was released. Look again."
                )
            claim, left = snap.record.claim, snap.lease_left
            if claim is not None and (yield Dead(claim.holder)):
                left = 0.0
            after = decide_release(
                snap.record, left, snap.now, pause=pause, actor=actor, detail=reason
            )
            if isinstance(after, Refused):
                return Denied(run, after)
            if after == snap.record:
                return False
            if (yield Swap(run, snap.version, after, None, True)) is not None:
                tell(Event("released", run, claim, detail=reason or "", actor=actor))
                return True
        raise OutcomeUnknown(f"{run}: it moved {TRIES} times while it was to be released.")

    def history(self, run: RunKey) -> Flow[tuple[Attempt, ...]]:
        """All that the record remembers of the attempts at the run's pauses."""
        snap = yield Read(run)
        claim = snap.record.claim
        dead = claim is not None and (yield Dead(claim.holder))
        return attempts(snap, dead=dead)

    def _ungated(
        self, run: RunKey, judge: Judge, trouble: StoreUnavailable, began: float
    ) -> Flow[ActiveClaim | Denied]:
        """Serve without the store, as the policy says, unless the delivery is void."""
        try:
            result = yield from self._unguarded(run, judge)
        except GeneratorExit:
            raise
        except BaseException as error:
            _telling.undecided(run, began, error)
            raise
        if isinstance(result, Denied):
            _telling.refused(result, began)
        else:
            _telling.ungated(result.passage, began, trouble)
        return result

    def _unguarded(self, run: RunKey, judge: Judge) -> Flow[ActiveClaim | Denied]:
        """The claim that the delivery would have been granted on an empty record."""
        loaded = yield Load()
        delivery = judge(loaded, Record())
        verdict = decide(Record(), delivery, None, self.policy, 0.0)
        if isinstance(verdict, Refused):
            return Denied(run, verdict, delivery, loaded)
        now = yield Now()
        passage = Passage(
            run=run,
            before=Record(),
            record=verdict.record,
            claim=verdict.claim,
            replaced=None,
            version=0,
            entered=now,
            deadline=now,
            loaded=loaded,
            delivery=delivery,
        )
        return ActiveClaim(self, passage, guarded=False)


class _Unsettled:
    """Writes down the end of a run later, as a job of the heartbeat."""

    def __init__(self, keeper: Keeper, claim: ActiveClaim, outcome: Outcome | None) -> None:
        self._keeper = keeper
        self._claim = claim
        self._outcome = outcome
        self._until = time.monotonic() + GIVE_UP

    def __call__(self) -> float | None:
        claim = self._claim
        flow = leave(claim.passage, self._outcome, claim._applied)
        try:
            kept = drive(flow, StorePort(self._keeper.renewer))
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, try again
            if time.monotonic() < self._until:
                return self._keeper.policy.lease / 9
            _telling.troubled("lost", claim.passage, error)
            return None
        _ended(claim, self._outcome, kept)
        return None


def _ended(claim: ActiveClaim, outcome: Outcome | None, kept: bool) -> None:
    # A loss that the heartbeat noticed was told then.
    if kept or not claim._lost:
        _telling.ended(claim.passage, outcome, kept=kept)
