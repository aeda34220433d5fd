"""Clauses on records as rows: each is its own, comes back as it was, and goes when told."""

from __future__ import annotations

from typing import Final

from remit_gates._model import (
    KEEP,
    Claim,
    Consumption,
    Holder,
    Intent,
    Outcome,
    Phase,
    Record,
    RunKey,
    Snapshot,
)
from remit_gates._ops import Read, Sleep, Swap
from remit_gates.testing._clause import Flow, claimed, clause, demand, fresh, settled
from remit_gates.testing._ops import Clause, Delete, Prune, Scan


MANY: Final = 1001
"""More rows than any sensible page has."""

BRIEF: Final = 0.2
"""An age that is soon reached."""


@clause()
def a_record_comes_back_unchanged() -> Flow:
    """A record is read as it was swapped in: every field, any text, all its consumptions."""
    for record in (Record(), claimed(1), _full()):
        run = fresh()
        version = yield Swap(run, None, record, 30.0 if record.claim else None, True)
        snap = yield Read(run)
        demand(snap.version == version, "a record has another version than its swap told")
        demand(
            snap.record == record, f"a record of {len(record.consumptions)} consumptions changed"
        )


@clause()
def an_absent_run_has_a_clock() -> Flow:
    """Reading a run without a record tells no version, an empty record and the clock."""
    snap = yield Read(fresh())
    demand(snap.version is None and snap.record == Record(), "an absent run has a record")
    demand(snap.lease_left is None, "an absent run has a lease")
    later = yield Read(fresh())
    demand(later.now >= snap.now > 1_577_836_800, "the clock is not in seconds since the epoch")


@clause()
def runs_are_independent() -> Flow:
    """Swapping or deleting one run leaves the others as they are."""
    one = fresh("one")
    two = RunKey(one.framework, one.namespace, "two")
    version = yield Swap(one, None, claimed(1), 30.0, True)
    other = yield Swap(two, None, claimed(2), 30.0, True)
    yield Swap(one, version, settled(1), None, True)
    snap = yield Read(two)
    demand(snap.version == other and snap.record == claimed(2), "a swap changed another run")
    yield Delete(one)
    snap = yield Read(two)
    demand(snap.version == other, "a delete changed another run")


@clause()
def keys_do_not_collide() -> Flow:
    """Framework, namespace and run are three names, whatever characters they have, however
    long they are, and even if they are empty."""
    unique = fresh().framework
    keys = [
        RunKey(unique, "a/b", "c"),
        RunKey(unique, "a", "b/c"),
        RunKey(unique, "a:b", "c"),
        RunKey(unique, "a", "b:c"),
        RunKey(f"{unique}a", "", "b/c"),
        RunKey(unique, "", ""),
        RunKey(unique, "", "c"),
        RunKey(unique, "", "C"),
        RunKey(unique, "", "c "),
        RunKey(unique, "", "'; DROP TABLE remit_gates; -- %s :run {run}"),
        RunKey(unique, "", "x" * 512),
        RunKey(unique, "", "x" * 511),
        RunKey(unique, "Ünï\N{SNOWMAN}", "\N{PILE OF POO}"),
        RunKey(unique, "", "e\N{COMBINING ACUTE ACCENT}"),
        RunKey(unique, "", "\N{LATIN SMALL LETTER E WITH ACUTE}"),
    ]
    for token, run in enumerate(keys):
        version = yield Swap(run, None, settled(token), None, False)
        demand(version is not None, f"{run!r} is held for another run")
    for token, run in enumerate(keys):
        snap = yield Read(run)
        demand(snap.record == settled(token), f"{run!r} reads another run's record")


@clause()
def delete_forgets() -> Flow:
    """delete() tells whether there was a record, and leaves none."""
    run = fresh()
    demand(not (yield Delete(run)), "a record was deleted that was not there")
    yield Swap(run, None, claimed(1), 30.0, True)
    demand((yield Delete(run)), "a record was deleted, and said not to have been there")
    snap = yield Read(run)
    demand(snap.version is None and snap.record == Record(), "a deleted record is still there")
    demand((yield Swap(run, None, settled(1), None, True)), "a deleted run cannot be inserted")


@clause()
def scan_lists_in_order() -> Flow:
    """scan() lists every record of the framework and namespace that it is given, and no
    other, once, in the order of their keys, with what reading would tell."""
    framework = fresh().framework
    runs = [RunKey(framework, f"n{i % 3}", f"r{i * 7919 % MANY:04}") for i in range(MANY)]
    odd = [RunKey(framework, "n1", "Z"), RunKey(framework, "n1", "ä"), RunKey(framework, "é", "")]
    for run in (*runs, *odd, RunKey(f"{framework}x", "n1", "r")):
        yield Swap(run, None, settled(3), None, False)
    entries = yield Scan(framework)
    demand([entry.run for entry in entries] == sorted([*runs, *odd]), "a scan of a framework")
    entries = yield Scan(framework, "n1")
    expected = sorted(run for run in (*runs, *odd) if run.namespace == "n1")
    demand([entry.run for entry in entries] == expected, "a scan of a namespace")
    snap: Snapshot = yield Read(expected[0])
    entry = entries[0]
    same = (entry.snapshot.version, entry.snapshot.record) == (snap.version, snap.record)
    demand(same, "a scan tells another record than a read")
    demand(abs(entry.updated - snap.now) < 3600, "a scan tells another time than the store's")
    demand((yield Scan(fresh().framework)) == [], "a scan of nothing")


@clause()
def prune_keeps_claims_and_young_ones() -> Flow:
    """prune() forgets the old records that have no claim, and counts them; it keeps what
    was swapped since and what has a claim, even an expired one."""
    framework = fresh().framework
    old, live, dead = (RunKey(framework, "", name) for name in ("old", "live", "dead"))
    yield Swap(old, None, settled(1), None, True)
    yield Swap(live, None, claimed(1), 30.0, True)
    yield Swap(dead, None, claimed(1), 0.0, True)
    yield Prune(3600.0)
    demand(len((yield Scan(framework))) == 3, "a young record was pruned")
    yield from _aged(old, BRIEF)
    gone = yield Prune(BRIEF)
    left = {entry.run.run for entry in (yield Scan(framework))}
    demand(old.run not in left and gone >= 1, "an old record was kept")
    demand(left == {live.run, dead.run}, "a record with a claim was pruned")


def _aged(run: RunKey, seconds: float) -> Clause[None]:
    """Wait until `run` was last swapped more than `seconds` ago."""
    while True:
        entries = yield Scan(run.framework)
        (entry,) = [entry for entry in entries if entry.run == run]
        if entry.snapshot.now - entry.updated > seconds:
            return
        yield Sleep(seconds / 10)


def _full() -> Record:
    """A record in which every field says something."""
    text = "Ünï \N{SNOWMAN} \N{PILE OF POO} '\"\\ \x00 \n %s {x} :run"
    holder = Holder(text, 2**31, "123456", "n" * 32)
    outcome = Outcome("released", text, ("p1", text), text, text)
    entries = tuple(
        Consumption(
            pause=f"{text}{index}",
            generation=index,
            token=2**40 + index,
            attempt=2,
            phase=Phase.FAILED,
            digest="d" * 64,
            delivery=text,
            actor=text,
            holder=holder,
            since=1_700_000_000.123456 + index,
            until=1_700_000_001.654321,
            outcome=outcome,
            applied=True,
            reopened="anew",
        )
        for index in range(KEEP)
    )
    claim = Claim(
        holder=holder,
        token=2**41,
        attempt=3,
        intent=Intent.CONTINUE,
        pauses=(text, "p2"),
        lease=12.5,
        since=1_700_000_002.25,
        key=text,
        delivery=text,
        actor=text,
    )
    return Record(token=2**41, served=2**40, claim=claim, consumptions=entries)
