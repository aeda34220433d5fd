"""Stores that are whole but for one thing, each of which one clause of the kit must notice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import SchemaMismatch, StoreUnavailable
from remit_gates.stores import Entry, Store
from remit_gates.stores.memory import MemoryStore
from tests.stores.harnesses import Losing, Wrapper


class Newer(Wrapper):
    """A store that a newer release has set up."""

    def read(self, run: RunKey) -> Snapshot:
        raise SchemaMismatch("newer")

    def swap(self, *args: Any, **kwargs: Any) -> int | None:
        raise SchemaMismatch("newer")

    def setup(self) -> None:
        raise SchemaMismatch("newer")


class Whole:
    """The harness of a store without a defect; its subclasses have one each, and are named
    like the clause that forbids it."""

    def __init__(self) -> None:
        self.shared = MemoryStore()

    def __call__(self) -> Store:
        return self.wrapped(self.shared)

    def wrapped(self, store: MemoryStore) -> Store:
        return store

    def losing(self) -> Store:
        return Losing(self.shared)

    def newer(self) -> Store:
        return Newer(self.shared)


class Meeting(Wrapper):
    """Looks and then writes, with time for another to do the same in between."""

    barrier = threading.Barrier(2)

    def __init__(self, inner: MemoryStore, inserting: bool) -> None:
        super().__init__(inner)
        self.rows = inner
        self.inserting = inserting

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        seen = self.inner.read(run)
        # Those that race each other swap a claim in where there is none.
        fits = (seen.version, seen.record.claim) == (expected, None) and record.claim
        if not fits or (expected is None) is not self.inserting:
            return self.inner.swap(run, expected, record, lease, durable)
        try:
            # Alone it goes on after a moment; racers meet here, two by two.
            self.barrier.wait(0.05)
        except threading.BrokenBarrierError:
            self.barrier.reset()
        now = self.inner.read(run).version
        return self.inner.swap(run, now, record, lease, durable)


class SetupIsHarmless(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Forgetful(Wrapper):
            def setup(self) -> None:
                store._rows.clear()

        return Forgetful(store)


class AnInsertWinsOnce(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        return Meeting(store, inserting=True)


class ASwapWinsOnce(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        return Meeting(store, inserting=False)


class AStaleVersionChangesNothing(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Meddling(Wrapper):
            def swap(self, run: RunKey, *args: Any, **kwargs: Any) -> int | None:
                version = self.inner.swap(run, *args, **kwargs)
                if version is None and run in store._rows:
                    store._rows[run] = replace(store._rows[run], expires=None)
                return version

        return Meddling(store)


class AVersionIsNeverReused(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Counting(Wrapper):
            def swap(self, run: RunKey, expected: int | None, *args: Any, **kwargs: Any) -> Any:
                version = self.inner.swap(run, expected, *args, **kwargs)
                if expected is None and version is not None:
                    store._rows[run] = replace(store._rows[run], version=1)
                    return 1
                return version

        return Counting(store)


class TwoStoresAgree(Whole):
    def __init__(self) -> None:
        super().__init__()
        self.late: dict[RunKey, tuple[Store, Snapshot]] = {}

    def wrapped(self, store: MemoryStore) -> Store:
        late = self.late

        class Lagging(Wrapper):
            """Shows others what was swapped only once it is durable."""

            def swap(
                self,
                run: RunKey,
                expected: int | None,
                record: Record,
                lease: float | None,
                durable: bool = True,
            ) -> int | None:
                before = self.inner.read(run)
                if durable:
                    late.pop(run, None)
                else:
                    late[run] = (self, before)
                return self.inner.swap(run, expected, record, lease, durable)

            def read(self, run: RunKey) -> Snapshot:
                writer, before = late.get(run, (self, None))
                return self.inner.read(run) if writer is self or before is None else before

        return Lagging(store)


class ALostAcknowledgementIsUnknown(Whole):
    def losing(self) -> Store:
        class Denying(Wrapper):
            def swap(self, *args: Any, **kwargs: Any) -> int | None:
                self.inner.swap(*args, **kwargs)
                raise StoreUnavailable("nothing was changed, or so it says")

        return Denying(self.shared)


class ANewerSchemaIsRefused(Whole):
    def newer(self) -> Store:
        return self.shared


class NoLeaseIsNoClaim(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Keeping(Wrapper):
            def swap(
                self,
                run: RunKey,
                expected: int | None,
                record: Record,
                lease: float | None,
                durable: bool = True,
            ) -> int | None:
                row = store._rows.get(run)
                version = self.inner.swap(run, expected, record, lease, durable)
                if lease is None and row is not None and version is not None:
                    store._rows[run] = replace(store._rows[run], expires=row.expires)
                return version

        return Keeping(store)


class ALeaseOfZeroHasExpired(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Falsy(Wrapper):
            def swap(
                self,
                run: RunKey,
                expected: int | None,
                record: Record,
                lease: float | None,
                durable: bool = True,
            ) -> int | None:
                return self.inner.swap(run, expected, record, lease or None, durable)

        return Falsy(store)


class OnlyTheTokenRenews(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Lax(Wrapper):
            def renew(self, run: RunKey, token: int, lease: float) -> bool:
                claim = self.inner.read(run).record.claim
                return claim is not None and self.inner.renew(run, claim.token, lease)

        return Lax(store)


class RenewingMovesOnlyTheLease(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Growing(Wrapper):
            def renew(self, run: RunKey, token: int, lease: float) -> bool:
                left = self.inner.read(run).lease_left or 0.0
                return self.inner.renew(run, token, max(lease, left))

        return Growing(store)


class AnExpiredClaimStaysExpired(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Reviving(Wrapper):
            def renew(self, run: RunKey, token: int, lease: float) -> bool:
                row = store._rows.get(run)
                ran = row is not None and row.expires is not None and row.expires > row.updated
                if row is not None and row.record.claim is not None and ran:
                    store._rows[run] = replace(row, expires=store._clock() + 1.0)
                return self.inner.renew(run, token, lease)

        return Reviving(store)


class AnExpiredClaimIsTakenOnce(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Standing(Wrapper):
            def swap(self, run: RunKey, expected: int | None, *args: Any, **kwargs: Any) -> Any:
                left = self.inner.read(run).lease_left
                version = self.inner.swap(run, expected, *args, **kwargs)
                if expected is not None and version is not None and left is not None and left <= 0:
                    store._rows[run] = replace(store._rows[run], version=expected)
                    return expected
                return version

        return Standing(store)


class ALeaseLivesByTheStoresClock(Whole):
    def __init__(self) -> None:
        super().__init__()
        self.shared = MemoryStore(clock=self.clock)

    def clock(self) -> float:
        return time.time()


class TheRenewerSeesTheSameRecords(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Apart(Wrapper):
            def renewer(self) -> Store:
                return MemoryStore()

        return Apart(store)


class ARecordComesBackUnchanged(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Short(Wrapper):
            def swap(
                self,
                run: RunKey,
                expected: int | None,
                record: Record,
                lease: float | None,
                durable: bool = True,
            ) -> int | None:
                record = replace(record, consumptions=record.consumptions[-63:])
                return self.inner.swap(run, expected, record, lease, durable)

        return Short(store)


class AnAbsentRunHasAClock(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Silent(Wrapper):
            def read(self, run: RunKey) -> Snapshot:
                snap = self.inner.read(run)
                return replace(snap, now=0.0) if snap.version is None else snap

        return Silent(store)


class RunsAreIndependent(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Sweeping(Wrapper):
            def delete(self, run: RunKey) -> bool:
                gone = [key for key in store._rows if key.framework == run.framework]
                return sum(map(self.inner.delete, gone)) > 0

        return Sweeping(store)


class KeysDoNotCollide(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Trimming(Wrapper):
            def read(self, run: RunKey) -> Snapshot:
                return self.inner.read(replace(run, run=run.run.rstrip()))

            def swap(self, run: RunKey, *args: Any, **kwargs: Any) -> int | None:
                return self.inner.swap(replace(run, run=run.run.rstrip()), *args, **kwargs)

        return Trimming(store)


class DeleteForgets(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Cheerful(Wrapper):
            def delete(self, run: RunKey) -> bool:
                self.inner.delete(run)
                return True

        return Cheerful(store)


class ScanListsInOrder(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class OnePage(Wrapper):
            def scan(self, *args: Any, **kwargs: Any) -> Iterator[Entry]:
                return islice(self.inner.scan(*args, **kwargs), 1000)

        return OnePage(store)


class ScanGoesOnBehindAKey(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Found(Wrapper):
            """Goes on behind a record, and so needs one to go on behind."""

            def scan(
                self, *args: Any, after: RunKey | None = None, **kwargs: Any
            ) -> Iterator[Entry]:
                entries = self.inner.scan(*args, **kwargs)
                if after is None:
                    return entries
                listed = list(entries)
                runs = [entry.run for entry in listed]
                return iter(listed[runs.index(after) + 1 :] if after in runs else [])

        return Found(store)


class ScanTellsClaimsApart(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Living(Wrapper):
            """Takes an expired claim for none."""

            def scan(
                self, *args: Any, claimed: bool | None = None, **kwargs: Any
            ) -> Iterator[Entry]:
                for entry in self.inner.scan(*args, **kwargs):
                    if claimed in (None, (entry.snapshot.lease_left or 0) > 0):
                        yield entry

        return Living(store)


class ScanTellsWhatIsIdle(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Fresh(Wrapper):
            """Takes a renewal for a change."""

            def renew(self, run: RunKey, token: int, lease: float) -> bool:
                renewed = self.inner.renew(run, token, lease)
                if renewed:
                    store._rows[run] = replace(store._rows[run], updated=store._clock())
                return renewed

        return Fresh(store)


class PruneKeepsClaimsAndYoungOnes(Whole):
    def wrapped(self, store: MemoryStore) -> Store:
        class Greedy(Wrapper):
            def prune(self, older_than: float) -> int:
                for entry in list(self.inner.scan()):
                    left, age = entry.snapshot.lease_left, entry.snapshot.now - entry.updated
                    if left is not None and left <= 0 and age > older_than:
                        self.inner.delete(entry.run)
                return self.inner.prune(older_than)

        return Greedy(store)


def _clause(harness: type[Whole]) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in harness.__name__)[1:]


DEFECTS = {_clause(harness): harness for harness in Whole.__subclasses__()}
