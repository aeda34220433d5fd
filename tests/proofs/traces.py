"""Traces of a store under load, checked against the steps that the model allows.

`Recorder` notes each operation when it begins and when it ends, by one counter for all
threads. `faults` then looks for what no interleaving of the model's steps explains: two
swaps at one version, a step that is no grant, settlement, withdrawal, release or renewal,
a read of something that was not there while it lasted. The steps are written down again
here, after `Granted`, `Settled`, `Withdrawn` and `Released` of `formal/ResumeGate.tla`, and
not taken from `_decide`, which is what is being watched.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from remit_gates._model import Holder, Intent, Phase, Record, RunKey, Snapshot
from remit_gates._port import StorePort
from remit_gates.errors import OutcomeUnknown
from remit_gates.stores import Store


COUNTER: Final = itertools.count()
"""Moments; `next` of a counter is one step to every thread."""


def plain(version: int | None) -> int | None:
    """A version without the sign that a store gives it while the lease of its claim has ended,
    by which a renewal in between is noticed."""
    return None if version is None else abs(version)


class Event(NamedTuple):
    """One operation: what it was given, what the store did, and between which moments."""

    kind: str
    run: RunKey
    began: int
    ended: int
    given: Any
    result: Any


class Recorder(StorePort):
    """A port that notes what a store does, loses some answers, and knows who is dead."""

    def __init__(self, store: Store, events: list[Event], dead: set[str], seed: int) -> None:
        super().__init__(store)
        self.events = events
        self._dead = dead
        self._random = random.Random(seed)

    def read(self, run: RunKey) -> Snapshot:
        began = next(COUNTER)
        snap: Snapshot = self.store.read(run)  # type: ignore[assignment]
        self.events.append(Event("read", run, began, next(COUNTER), None, snap))
        return snap

    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> int | None:
        began = next(COUNTER)
        fate = self._random.random()
        if fate < 0.05:
            raise OutcomeUnknown("lost before it came to the store")
        version: Any = self.store.swap(run, expected, record, lease, durable)
        self.events.append(Event("swap", run, began, next(COUNTER), (expected, record), version))
        if fate < 0.1:
            raise OutcomeUnknown("lost on the way back")
        return version  # type: ignore[no-any-return]

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        began = next(COUNTER)
        renewed = bool(self.store.renew(run, token, lease))
        self.events.append(Event("renew", run, began, next(COUNTER), token, renewed))
        return renewed

    def dead(self, holder: Holder) -> bool:
        return holder.nonce in self._dead

    def sleep(self, seconds: float) -> None:
        """Nobody waits here."""


@dataclass(frozen=True)
class Version:
    """One version of a record: which swap made it, and between which moments it was the newest
    at the longest."""

    number: int | None
    record: Record
    since: int
    until: float


def history(run: RunKey, events: Sequence[Event]) -> tuple[list[Version], str | None]:
    """The versions of a run's record, in order, and what is wrong with them."""
    made: dict[int | None, Event] = {}
    for event in events:
        if event.kind == "swap" and event.run == run and event.result is not None:
            expected = plain(event.given[0])
            if expected in made:
                return [], "two swaps landed at one version"
            made[expected] = event
    versions: list[Version] = []
    number: int | None = None
    record, since = Record(), -1
    while number in made:
        event = made.pop(number)
        versions.append(Version(number, record, since, event.ended))
        number, record, since = plain(event.result), event.given[1], event.began
    versions.append(Version(number, record, since, float("inf")))
    return versions, "a swap landed at a version that never was" if made else None


def faults(events: Sequence[Event], serves: bool) -> Iterator[str]:
    """All that the model does not allow; `serves` is `on_abandoned="serve"`."""
    for run in {event.run for event in events}:
        versions, wrong = history(run, events)
        if wrong is not None:
            yield wrong
            continue
        for number in range(1, len(versions)):
            if step(versions, number, serves) is None:
                yield f"no step of the model: {versions[number - 1].record} {versions[number].record}"
        for event in events:
            if event.run == run:
                yield from _seen(event, versions)


def _seen(event: Event, versions: Sequence[Version]) -> Iterator[str]:
    """What an operation saw was the newest at some moment between its beginning and its end."""
    then = [at for at in versions if at.since < event.ended and at.until > event.began]
    if event.kind == "read":
        snap: Snapshot = event.result
        if not any((at.number, at.record) == (plain(snap.version), snap.record) for at in then):
            yield f"a read of what was not there: {snap}"
    elif event.kind == "renew":
        held = {at.record.claim is not None and at.record.claim.token == event.given for at in then}
        if event.result not in held:
            yield f"a renewal of {event.given} that was {event.result}"
    elif event.result is None:
        expected = event.given[0]
        if all(at.number == expected for at in then):
            yield f"a swap at version {expected} failed for nothing"


def step(versions: Sequence[Version], number: int, serves: bool) -> str | None:
    """Which step of the model leads to the version `number` from the one before it."""
    before, after = versions[number - 1].record, versions[number].record
    if before == after:
        return "renewed"
    if after.token > before.token:
        return "granted" if _granted(before, after, serves) else None
    if after.token < before.token:
        return None
    if before.claim is not None:
        base = next(
            at.record
            for at in reversed(versions[:number])
            if at.record.claim != before.claim and at.record.token < before.claim.token
        )
        if replace(after, token=base.token) == base:
            return "withdrawn"
        if _settled(before, after):
            return "settled"
    return "released" if _released(before, after) else None


def _changed(before: Record, after: Record) -> set[str]:
    """The pauses of which something was changed."""
    entries = {*before.consumptions} ^ {*after.consumptions}
    return {entry.pause for entry in entries}


def _granted(before: Record, after: Record, serves: bool) -> bool:
    claim = after.claim
    if claim is None or claim.token != after.token or after.served != before.served:
        return False
    if not _changed(before, after) <= {*claim.pauses}:
        return False
    answers = claim.intent is Intent.ANSWER
    if before.claim is not None and answers and not serves:
        return False
    for pause in claim.pauses:
        entry, old = after.closed(pause), before.closed(pause)
        if entry is None or (entry.phase, entry.token) != (Phase.RUNNING, claim.token):
            return False
        if old is not None and old.phase is Phase.SETTLED:
            return False
        if not answers and (old is None or old not in before.unfinished):
            return False
    return True


def _settled(before: Record, after: Record) -> bool:
    claim = before.claim
    if claim is None or after.claim is not None or after.served != claim.token:
        return False
    for old, entry in zip(before.consumptions, after.consumptions, strict=True):
        if old.token == claim.token and entry.phase is Phase.RUNNING:
            return False
        if old.token != claim.token and replace(old, reopened=entry.reopened) != entry:
            return False
        if old.reopened is not None and entry.reopened != old.reopened:
            return False
    return True


def _released(before: Record, after: Record) -> bool:
    if after.claim is not None:
        return False
    for old, entry in zip(before.consumptions, after.consumptions, strict=True):
        unfinished = old.phase is not Phase.SETTLED and old.reopened is None
        if unfinished != (old != entry) or (unfinished and entry.reopened != "again"):
            return False
    return True
