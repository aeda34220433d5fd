"""Stores in Postgres: one statement an operation, and no state in a session that may be shared.

So a transaction pooler may stand in between, and a connection that the framework keeps busy
is never waited for. Every operation is one flow of driver calls, performed by either colour.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import MissingExtra
from remit_gates.stores import _calls
from remit_gates.stores._checks import Check
from remit_gates.stores._protocol import AsyncStore, Entry, Store
from remit_gates.stores._steps import aperform, perform
from remit_gates.stores.sql import TABLE


try:
    from remit_gates.stores._pg_flows import Flows
    from remit_gates.stores._pg_sources import ASYNC, SYNC, Colour
except ImportError as error:
    if error.name is None or not error.name.startswith("psycopg"):
        raise
    raise MissingExtra(
        "A store in Postgres needs psycopg 3: pip install 'remit-gates[postgres]'"
    ) from error


class _Connected:
    """What the stores of both colours share: all but the waiting."""

    _colour: ClassVar[Colour]

    def __init__(
        self,
        source: Any,
        *,
        table: str = TABLE,
        schema: str | None = None,
        size: int = 4,
        timeout: float = 10.0,
    ) -> None:
        self._flows = Flows(self._colour, source, table, schema, size, timeout)
        self._renewer: PostgresStore | None = None
        self._options: dict[str, Any] = {
            "table": table,
            "schema": schema,
            "size": size,
            "timeout": timeout,
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._flows.label}>"

    def _apart(self) -> Store:
        """A store over the same records, with connections of its own."""
        if self._renewer is None:
            self._renewer = PostgresStore(self._flows.address, **self._options)
        return self._renewer


class PostgresStore(_Connected, Store):
    """Records in a table of a Postgres database, for sync callers.

    The table is made by `setup()`.

    Args:
        source: A URL or other conninfo string; or a psycopg connection, of which only the
            parameters are used; or a psycopg pool, from which a connection is borrowed
            for each operation.
        table: Name of the table.
        schema: Schema of the table; None for the first of the search path.
        size: How many connections the store opens at most, where it opens its own.
        timeout: Seconds that an operation waits for a connection, and then for an answer.

    Raises:
        UsageError: `source` leads to no database.
    """

    _colour = SYNC

    def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return perform(self._flows.call(_calls.read(run)))

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        call = _calls.swap(run, expected, record, lease, durable)
        return perform(self._flows.call(call))

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return perform(self._flows.call(_calls.renew(run, token, lease)))

    def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return perform(self._flows.call(_calls.delete(run)))

    def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> Iterator[Entry]:
        """See `Store.scan`."""
        for page in _calls.pages(framework, namespace, after, claimed, idle):
            yield from perform(self._flows.call(page))

    def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        return perform(self._flows.prune(older_than))

    def setup(self) -> None:
        """See `Store.setup`."""
        perform(self._flows.setup())

    def checks(self) -> tuple[Check, ...]:
        """What can be said of the server, whether or not the table is there.

        Raises:
            StoreUnavailable: The server cannot be reached.
        """
        return perform(self._flows.checks())

    def close(self) -> None:
        """See `Store.close`. A later call opens anew."""
        perform(self._flows.close())
        if self._renewer is not None:
            self._renewer.close()

    def renewer(self) -> Store:
        """See `Store.renewer`."""
        return self._apart() if self._flows.borrows else self


class AsyncPostgresStore(_Connected, AsyncStore):
    """Records in a table of a Postgres database, for async callers, of any event loop.

    The table is made by `setup()`.

    Args:
        source: A URL or other conninfo string; or a psycopg connection, of which only the
            parameters are used; or a psycopg pool, from which an async connection is borrowed
            for each operation.
        table: Name of the table.
        schema: Schema of the table; None for the first of the search path.
        size: How many connections the store opens in each event loop at most, where it opens its own.
        timeout: Seconds that an operation waits for a connection, and then for an answer.

    Raises:
        UsageError: `source` leads to no database.
    """

    _colour = ASYNC

    async def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return await aperform(self._flows.call(_calls.read(run)))

    async def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`."""
        call = _calls.swap(run, expected, record, lease, durable)
        return await aperform(self._flows.call(call))

    async def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return await aperform(self._flows.call(_calls.renew(run, token, lease)))

    async def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return await aperform(self._flows.call(_calls.delete(run)))

    async def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> AsyncIterator[Entry]:
        """See `Store.scan`."""
        for page in _calls.pages(framework, namespace, after, claimed, idle):
            for entry in await aperform(self._flows.call(page)):
                yield entry

    async def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        return await aperform(self._flows.prune(older_than))

    async def setup(self) -> None:
        """See `Store.setup`."""
        await aperform(self._flows.setup())

    async def close(self) -> None:
        """See `Store.close`. A later call opens anew."""
        await aperform(self._flows.close())
        if self._renewer is not None:
            self._renewer.close()

    def renewer(self) -> Store:
        """See `Store.renewer`."""
        return self._apart()
