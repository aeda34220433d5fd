"""Clauses on leases: a claim lives by the store's clock, and only its holder prolongs it."""

from __future__ import annotations

from typing import Final

from remit_gates._model import RunKey, Snapshot
from remit_gates._ops import Read, Renew, Sleep, Swap
from remit_gates.testing._clause import RACERS, Flow, claimed, clause, demand, fresh, settled
from remit_gates.testing._ops import Clause, Race, Renewing, Skewed, times


BRIEF: Final = 0.2
"""A lease that is soon over."""

DAY: Final = 86_400.0


@clause()
def no_lease_is_no_claim() -> Flow:
    """A record that was swapped in without a lease has none left to tell or to renew."""
    run = fresh()
    version = yield Swap(run, None, claimed(1), 30.0, True)
    yield Swap(run, version, settled(1), None, True)
    snap = yield Read(run)
    demand(snap.lease_left is None, f"{snap.lease_left} s are left of no lease")
    demand(not (yield Renew(run, 1, 30.0)), "a claim was renewed that had been settled")


@clause()
def a_lease_of_zero_has_expired() -> Flow:
    """A claim with a lease of zero is there, expired, and cannot be renewed."""
    run = fresh()
    yield Swap(run, None, claimed(1), 0.0, True)
    snap = yield Read(run)
    demand(snap.record == claimed(1), "the claim is not there")
    demand(snap.lease_left is not None and snap.lease_left <= 0, f"it has {snap.lease_left} s left")
    demand(not (yield Renew(run, 1, 30.0)), "an expired claim was renewed")


@clause()
def only_the_token_renews() -> Flow:
    """A claim is renewed by its own token, and neither by another nor where there is none."""
    run = fresh()
    yield Swap(run, None, claimed(7), 30.0, True)
    for token in (6, 8):
        demand(not (yield Renew(run, token, 60.0)), f"token {token} renewed the claim of token 7")
    demand(not (yield Renew(fresh(), 7, 60.0)), "a claim was renewed on a run without a record")
    snap = yield Read(run)
    demand((snap.lease_left or 0) <= 30.0, "a refused renewal prolonged the lease")
    demand((yield Renew(run, 7, 60.0)), "the claim's own token did not renew it")


@clause()
def renewing_moves_only_the_lease() -> Flow:
    """Renewing has the claim live the given seconds from now, less or more than before, and
    moves neither the version nor the record."""
    run = fresh()
    version = yield Swap(run, None, claimed(1), 30.0, True)
    for lease in (600.0, 60.0):
        yield Renew(run, 1, lease)
        snap = yield Read(run)
        left = snap.lease_left or 0.0
        demand(lease / 2 < left <= lease, f"{left} s are left after a renewal for {lease} s")
        demand(snap.version == version, "renewing moved the version")
        demand(snap.record == claimed(1), "renewing changed the record")


@clause()
def an_expired_claim_stays_expired() -> Flow:
    """A lease runs out while nobody does anything, and then cannot be renewed."""
    run = fresh()
    yield Swap(run, None, claimed(1), BRIEF, True)
    snap = yield from _expired(run)
    demand(snap.record == claimed(1), "an expired claim left the record")
    demand(not (yield Renew(run, 1, 30.0)), "an expired claim was renewed")
    snap = yield Read(run)
    demand(snap.lease_left is not None and snap.lease_left <= 0, "an expired claim came alive")


@clause()
def an_expired_claim_is_taken_once() -> Flow:
    """The version that is read of an expired claim serves one swap: whichever comes first
    of its late holder and those who take over."""
    run = fresh()
    yield Swap(run, None, claimed(1), 0.0, True)
    snap = yield Read(run)
    late = yield Swap(run, snap.version, claimed(1), 30.0, True)
    demand(late is not None, "a late holder could not take its expired claim again")
    taken = yield Swap(run, snap.version, claimed(2), 30.0, True)
    demand(taken is None, "a claim was taken over that its holder had made good")
    yield Swap(run, late, claimed(2), 0.0, True)
    snap = yield Read(run)
    results = yield Race(times(RACERS, lambda _: Swap(run, snap.version, claimed(3), 30.0, True)))
    winners = sum(isinstance(result, int) for result in results)
    demand(winners == 1, f"{winners} of {RACERS} took one expired claim")


@clause()
def a_lease_lives_by_the_stores_clock() -> Flow:
    """However far this process's clocks are off, a lease keeps its length and the clock that
    is told stays the same."""
    for off in (DAY, -DAY):
        run = fresh()
        yield Skewed(Swap(run, None, claimed(1), 30.0, True), off)
        true = yield Read(run)
        skewed = yield Skewed(Read(run), off)
        for snap in (true, skewed):
            left = snap.lease_left or 0.0
            demand(0 < left <= 30.0, f"{left} s are left of 30 with clocks {off} s off")
        demand(abs(skewed.now - true.now) < DAY / 2, "the clock told is that of this process")
        demand((yield Skewed(Renew(run, 1, 30.0), off)), "a live claim could not be renewed")
        snap = yield Read(run)
        left = snap.lease_left or 0.0
        demand(0 < left <= 30.0, f"{left} s are left after a renewal with clocks {off} s off")


@clause()
def the_renewer_sees_the_same_records() -> Flow:
    """What renewer() returns renews and reads the same claims, from whatever thread."""
    run = fresh()
    version = yield Swap(run, None, claimed(1), 30.0, True)
    demand((yield Renewing(Renew(run, 1, 600.0))), "the renewer did not renew a live claim")
    snap = yield Read(run)
    demand((snap.lease_left or 0) > 30.0, "what the renewer renewed is not in the store")
    snap = yield Renewing(Read(run))
    demand(snap.version == version and snap.record == claimed(1), "the renewer reads another run")


def _expired(run: RunKey) -> Clause[Snapshot]:
    """The snapshot of `run` once its lease has run out."""
    first: Snapshot = yield Read(run)
    snap = first
    while snap.lease_left is not None and snap.lease_left > 0:
        demand(snap.now - first.now < 100 * BRIEF, f"a lease of {BRIEF} s does not end")
        yield Sleep(BRIEF / 10)
        snap = yield Read(run)
    return snap
