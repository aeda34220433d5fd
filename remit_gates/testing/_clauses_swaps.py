"""Clauses on the one atomic operation: of all who expect a version, one moves it."""

from __future__ import annotations

from remit_gates._model import RunKey
from remit_gates._ops import Read, Swap
from remit_gates.errors import OutcomeUnknown, RemitError, SchemaMismatch
from remit_gates.testing._clause import (
    RACERS,
    Flow,
    claimed,
    clause,
    demand,
    fresh,
    refused,
    settled,
)
from remit_gates.testing._ops import Clause, Delete, Faulty, Other, Race, Setup, only, times


@clause()
def setup_is_harmless() -> Flow:
    """setup() may be repeated and may race itself, and keeps the records."""
    results = yield Race(times(RACERS, lambda _: Setup()))
    demand(not any(results), f"{RACERS} racing setups: {_errors(results)}")
    run = fresh()
    version = yield Swap(run, None, settled(1), None, True)
    yield Setup()
    snap = yield Read(run)
    demand(snap.version == version, "a record was gone after a second setup")


@clause()
def an_insert_wins_once() -> Flow:
    """Of racers that insert one absent run, exactly one succeeds, and its record stays."""
    run = fresh()
    results = yield Race(times(RACERS, lambda i: Swap(run, None, claimed(i + 1), 30.0, True)))
    yield from _won_once(run, results)


@clause()
def a_swap_wins_once() -> Flow:
    """Of racers that swap at one version, exactly one succeeds, and its record stays."""
    run = fresh()
    version = yield Swap(run, None, settled(0), None, True)
    results = yield Race(times(RACERS, lambda i: Swap(run, version, claimed(i + 1), 30.0, True)))
    yield from _won_once(run, results)


@clause()
def a_stale_version_changes_nothing() -> Flow:
    """A swap at another version than the record's, or at one of a run that is absent,
    returns None and changes nothing."""
    run = fresh()
    first = yield Swap(run, None, settled(1), None, True)
    second = yield Swap(run, first, claimed(2), 30.0, True)
    for expected in (first, second + 1, None):
        result = yield Swap(run, expected, settled(9), None, True)
        demand(result is None, f"a swap at {_which(expected, first)} version succeeded")
    snap = yield Read(run)
    demand(snap.version == second, "a refused swap moved the version")
    demand(snap.record == claimed(2), "a refused swap changed the record")
    demand(snap.lease_left is not None, "a refused swap changed the lease")
    absent = fresh()
    result = yield Swap(absent, first, settled(9), None, True)
    demand(result is None, "a swap at a version succeeded where there is no record")
    snap = yield Read(absent)
    demand(snap.version is None, "a refused swap made a record")


@clause()
def a_version_is_never_reused() -> Flow:
    """A run that was deleted and made anew has none of its old versions, so that a swap at
    an old one is refused."""
    run = fresh()
    old = []
    for _ in range(3):
        version = yield Swap(run, None, settled(1), None, False)
        for _ in range(3):
            old.append(version)
            version = yield Swap(run, version, settled(1), None, False)
        old.append(version)
        yield Delete(run)
    demand(len(set(old)) == len(old), "a version came back after a delete")
    version = yield Swap(run, None, settled(1), None, True)
    result = yield Swap(run, old[0], settled(9), None, True)
    demand(result is None and version not in old, "a swap at a version of the deleted run")


@clause()
def two_stores_agree() -> Flow:
    """What one store object swapped, durably or not, another over the same records reads
    at once and may swap."""
    run = fresh()
    version = yield Swap(run, None, claimed(1), 30.0, False)
    snap = yield Other(Read(run))
    demand(snap.version == version, "another store object did not see a swap")
    demand(snap.record == claimed(1), "another store object read another record")
    moved = yield Other(Swap(run, version, claimed(2), 30.0, False))
    snap = yield Read(run)
    demand(moved is not None and snap.version == moved, "a swap of another store object was lost")


@clause(needs="losing")
def a_lost_acknowledgement_is_unknown() -> Flow:
    """A swap whose acknowledgement is lost raises OutcomeUnknown, and reading tells whether
    it landed."""
    run = fresh()
    version = yield Swap(run, None, settled(1), None, True)
    result = yield from _caught(Faulty("losing", Swap(run, version, claimed(2), 30.0, True)))
    demand(
        refused(result, OutcomeUnknown),
        f"a swap without an acknowledgement gave {result!r} instead of OutcomeUnknown",
    )
    snap = yield Read(run)
    landed = snap.record == claimed(2) and snap.version != version
    missed = snap.record == settled(1) and snap.version == version
    demand(landed or missed, "after a lost acknowledgement the record is neither old nor new")
    again = yield Swap(run, snap.version, claimed(3), 30.0, True)
    demand(again is not None, "after a lost acknowledgement the version read does not hold")


@clause(needs="newer")
def a_newer_schema_is_refused() -> Flow:
    """A store that a newer release has set up raises SchemaMismatch, and is not touched."""
    run = fresh()
    for op in (Read(run), Swap(run, None, settled(1), None, True), Setup()):
        result = yield from _caught(Faulty("newer", op))
        demand(
            refused(result, SchemaMismatch),
            f"{type(op).__name__} on a newer schema gave {result!r} instead of SchemaMismatch",
        )


def _won_once(run: RunKey, results: list[object]) -> Flow:
    winners = [(i, version) for i, version in enumerate(results) if isinstance(version, int)]
    errors = [result for result in results if isinstance(result, BaseException)]
    demand(not errors, f"racers failed: {_errors(results)}")
    demand(len(winners) == 1, f"{len(winners)} of {len(results)} racers succeeded")
    (index, version), snap = winners[0], (yield Read(run))
    demand(snap.version == version, "the version read is not the winner's")
    demand(snap.record == claimed(index + 1), "the record read is not the winner's")


def _caught(op: object) -> Clause[object]:
    """The result of `op`, or the error that it raised."""
    try:
        return (yield from only(op))
    except RemitError as error:
        return error


def _errors(results: list[object]) -> str:
    kinds = {type(result).__name__ for result in results if isinstance(result, BaseException)}
    return ", ".join(sorted(kinds)) or "no error"


def _which(expected: int | None, first: int) -> str:
    return "no" if expected is None else "an old" if expected == first else "an unborn"
