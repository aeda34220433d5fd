"""What every store offers: `swap` is the single atomic operation, and time is the store's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from remit_gates._model import Record, RunKey, Snapshot


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a `scan`: a run, its snapshot, and when it was last swapped, in seconds
    since the epoch by the store's clock."""

    run: RunKey
    snapshot: Snapshot
    updated: float


@runtime_checkable
class Store(Protocol):
    """A store for sync callers; any thread may call it at any time."""

    def read(self, run: RunKey) -> Snapshot:
        """The record of `run` with its version, and the store's clock, of one moment.

        The version is opaque. One that was read while the claim had expired may hold only
        as long as the claim is expired still, since renewing does not move a version.

        Raises:
            StoreUnavailable: The store cannot be reached.
            SetupRequired: Its table is missing.
            SchemaMismatch: It is of a newer release.
        """
        ...

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """Replace the record of `run` if its version is `expected`, else change nothing.

        Args:
            run: The run.
            expected: The version that was read; None to insert if absent.
            record: The new record.
            lease: Seconds that the claim in `record` lives from now, by the store's
                clock; None when it has no claim.
            durable: Whether the swap must survive a crash of the store once this
                returned. It is visible to everyone at once in either case.

        Returns:
            The new version, never used for this run before; None when the version was
            another.

        Raises:
            OutcomeUnknown: The swap was sent and its answer never came.
            StoreUnavailable: It certainly did not land.
            SetupRequired, SchemaMismatch: As for `read`.
        """
        ...

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """Have the claim with `token` live `lease` seconds from now, if it is active and
        unexpired; whether it was. The version stays.

        Raises:
            StoreUnavailable: The store cannot be reached, or did not answer.
        """
        ...

    def delete(self, run: RunKey) -> bool:
        """Forget `run`; whether there was a record."""
        ...

    def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> Iterator[Entry]:
        """The records in the order of their keys, in pages: never all of them at once.
        Records that change meanwhile may show either state.

        Args:
            framework: Only of this framework.
            namespace: Only of this namespace.
            after: Only those behind this key, whether or not it has a record.
            claimed: Only those with a claim, live or expired; or only those without.
            idle: Only those that were last swapped more than so many seconds ago, by
                the store's clock. Renewing is no swap.

        Raises:
            StoreUnavailable, SetupRequired, SchemaMismatch: As for `read`.
        """
        ...

    def prune(self, older_than: float) -> int:
        """Forget the records without a claim that were last swapped more than
        `older_than` seconds ago; how many."""
        ...

    def setup(self) -> None:
        """Create the table, or bring it up to date. Harmless when repeated.

        Raises:
            SchemaMismatch: The table is of a newer release.
        """
        ...

    def close(self) -> None:
        """Close the connections that this store opened; those it was given stay open."""
        ...

    def renewer(self) -> Store:
        """A store over the same records that never waits for a connection that a run
        may be using: what the heartbeat renews through. May be this store itself."""
        ...


@runtime_checkable
class AsyncStore(Protocol):
    """A store for async callers; the same as `Store`, awaited."""

    async def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        ...

    async def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        ...

    async def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        ...

    async def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        ...

    def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> AsyncIterator[Entry]:
        """See `Store.scan`."""
        ...

    async def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        ...

    async def setup(self) -> None:
        """See `Store.setup`."""
        ...

    async def close(self) -> None:
        """See `Store.close`."""
        ...

    def renewer(self) -> Store:
        """A sync store over the same records with connections of its own: what the
        heartbeat renews through, whatever the event loop is doing."""
        ...
