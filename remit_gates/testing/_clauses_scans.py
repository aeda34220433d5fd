"""Clauses on the choices of a scan: each leaves out what it should, and nothing else."""

from __future__ import annotations

from typing import Final

from remit_gates._model import RunKey
from remit_gates._ops import Renew, Sleep, Swap
from remit_gates.testing._clause import Flow, claimed, clause, demand, fresh, settled
from remit_gates.testing._ops import Scan


BRIEF: Final = 0.2
"""An age that is soon reached."""


@clause()
def scan_goes_on_behind_a_key() -> Flow:
    """scan(after=) lists what is behind that key in the order of keys, whether or not the
    key has a record, and still keeps to the framework and namespace that it is given."""
    framework = fresh().framework
    names = ("", "a", "a/b", "b", "ä")
    runs = [RunKey(framework, space, name) for space in ("", "n", "n2") for name in names]
    for run in (*runs, RunKey(f"{framework}x", "n", "a")):
        yield Swap(run, None, settled(1), None, False)
    absent = [RunKey(framework, "n", "aa"), RunKey("", "", ""), RunKey(f"{framework}x", "", "")]
    for after in (*runs, *absent):
        for space in (None, "n"):
            entries = yield Scan(framework, space, after=after)
            expected = [run for run in runs if run > after and space in (None, run.namespace)]
            demand(
                [entry.run for entry in entries] == expected,
                f"behind {after!r} in namespace {space!r}: {[entry.run for entry in entries]!r}",
            )


@clause()
def scan_tells_claims_apart() -> Flow:
    """scan(claimed=True) lists the records with a claim, live or expired, and
    scan(claimed=False) the others."""
    framework = fresh().framework
    dead, free, held = (RunKey(framework, "", name) for name in ("dead", "free", "held"))
    yield Swap(dead, None, claimed(1), 0.0, True)
    yield Swap(held, None, claimed(1), 30.0, True)
    version = yield Swap(free, None, claimed(1), 30.0, True)
    yield Swap(free, version, settled(1), None, True)
    for wanted, expected in ((True, [dead, held]), (False, [free]), (None, [dead, free, held])):
        entries = yield Scan(framework, claimed=wanted)
        demand(
            [entry.run for entry in entries] == expected,
            f"claimed={wanted}: {[entry.run.run for entry in entries]}",
        )


@clause()
def scan_tells_what_is_idle() -> Flow:
    """scan(idle=) lists what was last swapped longer ago, by the store's clock; a renewal
    makes nothing younger."""
    framework = fresh().framework
    old, young = RunKey(framework, "", "old"), RunKey(framework, "", "young")
    yield Swap(old, None, claimed(1), 30.0, True)
    demand((yield Scan(framework, idle=3600.0)) == [], "a young record is listed as idle")
    while True:
        [entry] = yield Scan(framework)
        if entry.snapshot.now - entry.updated > BRIEF:
            break
        yield Sleep(BRIEF / 10)
    yield Renew(old, 1, 30.0)
    yield Swap(young, None, settled(1), None, True)
    entries = yield Scan(framework, idle=BRIEF)
    demand(old in [entry.run for entry in entries], "an idle record is not listed")
    for entry in entries:
        # On a machine that stands still, the young one may be old by now.
        age = entry.snapshot.now - entry.updated
        demand(age > BRIEF, f"a record swapped {age} s ago is listed as idle for {BRIEF}")
