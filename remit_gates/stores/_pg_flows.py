"""The operations of a Postgres store as flows of driver calls, the same for both colours.

A write whose answer was lost is never sent again, and its outcome is called unknown; only
what certainly did not reach the server counts as not done.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import tuple_row

from remit_gates.errors import (
    OutcomeUnknown,
    RemitError,
    SchemaMismatch,
    SetupRequired,
    StoreUnavailable,
    UsageError,
)
from remit_gates.stores import _calls
from remit_gates.stores._calls import PAGE, Call
from remit_gates.stores._checks import Check
from remit_gates.stores._pg_address import Address, address
from remit_gates.stores._pg_checks import checks
from remit_gates.stores._pg_sources import (
    Borrowed,
    Colour,
    Own,
    Source,
)
from remit_gates.stores._pg_waits import RESTING, TimedOut
from remit_gates.stores._steps import Do, Steps
from remit_gates.stores.sql import META, SCHEMA, statements


T = TypeVar("T")

TRIES: Final = 3
"""How often an operation is sent at most, where sending it again is safe."""

PREPARED: Final = frozenset(("read", "insert", "swap", "renew"))
"""What is prepared where that is safe: what a run waits for. They find one row by its key,
for which every plan is the same; the others are planned for their parameters."""

RACED: Final = (
    errors.UniqueViolation,
    errors.DuplicateTable,
    errors.DuplicateObject,
    errors.DuplicateSchema,
    errors.SerializationFailure,
    errors.DeadlockDetected,
)
"""What Postgres says to the loser of two IF NOT EXISTS at once, by isolation level."""


class Flows:
    """What a Postgres store does, short of doing it.

    Args:
        colour: Of the connections.
        source: What leads to the database.
        table: Name of the table.
        schema: Its schema; None for the first of the search path.
        size: How many connections to open at most.
        limit: Seconds that any wait takes at most.
    """

    def __init__(
        self,
        colour: Colour,
        source: Any,
        table: str,
        schema: str | None,
        size: int,
        limit: float,
    ) -> None:
        self.address: Address = address(source, limit)
        self.label = self.address.label
        # A pool of the other colour cannot be borrowed from, but it tells the way.
        self.borrows = _lends(source, colour)
        self._source: Source = (
            Borrowed(source, limit)
            if self.borrows
            else Own(colour, self.address.conninfo, self.address.options, size, limit)
        )
        self._cursor = colour.cursor
        self._table = table
        self._qualified = _qualified(table, schema)
        self._sql = _composed(table, schema)
        self._checked = False

    def call(self, call: Call[T]) -> Steps[T]:
        """Perform `call` on a connection of its own."""
        tries = TRIES
        while True:
            tries -= 1
            connection = yield from self._taken()
            sent = False
            try:
                if not self._checked:
                    yield from self._check(connection)
                sent = True
                rows = yield from self._rows(connection, call.name, call.params)
            except (psycopg.Error, UnicodeEncodeError) as error:
                lost = connection.pgconn.transaction_status not in RESTING
                if isinstance(error, errors.FeatureNotSupported) and self._forgets(connection):
                    continue
                if tries and _harmless(error, lost, sent, call):
                    continue
                unsure = sent and lost and not call.repeatable
                raise self._translated(error, unsure) from self.address.clean(error)
            finally:
                yield from self._source.give(connection)
            return call.parse(rows)

    def checks(self) -> Steps[tuple[Check, ...]]:
        """Look at the server's settings, whether or not the table is there."""
        connection = yield from self._taken()
        try:
            rows = yield from self._rows(connection, "settings", {"table": self._qualified})
        except psycopg.Error as error:
            raise self._translated(error, False) from self.address.clean(error)
        finally:
            yield from self._source.give(connection)
        return tuple(checks(rows[0]))

    def prune(self, older_than: float) -> Steps[int]:
        """Prune page by page, so that no statement keeps many rows locked."""
        gone = 0
        while (some := (yield from self.call(_calls.prune(older_than)))) == PAGE:
            gone += some
        return gone + some

    def setup(self) -> Steps[None]:
        """Create what is missing. Whoever loses a race looks again."""
        for _ in range(2 * TRIES):
            connection = yield from self._taken()
            try:
                return (yield from self._create(connection))
            except RACED:
                continue
            except psycopg.Error as error:
                raise self._translated(error, False) from self.address.clean(error)
            finally:
                yield from self._source.give(connection)
        raise StoreUnavailable(f"{self.label}: others keep changing table {self._table}.")

    def close(self) -> Steps[None]:
        """Close the connections that were opened here."""
        yield from self._source.close()

    def _taken(self) -> Steps[Any]:
        try:
            return (yield from self._source.take())
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"{self.label} cannot be reached: {self.address.said(error)}. Nothing was sent."
            ) from self.address.clean(error)

    def _rows(self, connection: Any, name: str, params: dict[str, Any]) -> Steps[list[Any]]:
        cursor = self._cursor(connection, row_factory=tuple_row)
        prepare = self._source.prepares if name in PREPARED else False
        yield Do(cursor.execute, self._sql[name], params, prepare=prepare)
        rows: list[Any] = yield Do(cursor.fetchall)
        if not connection.autocommit:
            yield Do(connection.commit)
        return rows

    def _forgets(self, connection: Any) -> bool:
        """Stop preparing on `connection`, because the table has changed and Postgres refuses
        to go by what was prepared for it before; False where nothing was."""
        prepared = self._source.prepares is None and connection.prepare_threshold is not None
        if prepared:
            connection.prepare_threshold = None
        return prepared

    def _version(self, connection: Any) -> Steps[int | None]:
        """The schema version of the table; None when it was never set up."""
        ask = _calls.version(self._table)
        try:
            rows = yield from self._rows(connection, ask.name, ask.params)
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            if not connection.autocommit:
                yield Do(connection.rollback)
            return None
        version = ask.parse(rows)
        if version is not None and version > SCHEMA:
            raise SchemaMismatch(
                f"Table {self._table} in {self.label} has schema {version}, and this release"
                f" knows {SCHEMA} at most. Nothing was read or changed. Upgrade remit-gates."
            )
        return version

    def _check(self, connection: Any) -> Steps[None]:
        if (yield from self._version(connection)) is None:
            raise self._setup_required()
        self._checked = True

    def _create(self, connection: Any) -> Steps[None]:
        # Asked first, so that setup is free for those who may not create anything.
        if (yield from self._version(connection)) is None:
            try:
                yield from self._change(connection, "create_meta")
            except errors.InvalidSchemaName:
                if not connection.autocommit:
                    yield Do(connection.rollback)
                yield from self._change(connection, "create_schema")
                yield from self._change(connection, "create_meta")
            yield from self._change(connection, "create_table")
            yield from self._change(connection, "mark", table=self._table, version=SCHEMA)
            yield from self._version(connection)
        self._checked = True

    def _change(self, connection: Any, name: str, **params: Any) -> Steps[None]:
        """Run a statement that has no rows to tell."""
        yield Do(connection.execute, self._sql[name], params or None, prepare=False)
        if not connection.autocommit:
            yield Do(connection.commit)

    def _translated(self, error: Exception, unsure: bool) -> RemitError:
        """The one place where psycopg's errors become ours."""
        said = self.address.said(error)
        if isinstance(error, (errors.UndefinedTable, errors.InvalidSchemaName)):
            self._checked = False
            return self._setup_required()
        if isinstance(error, (psycopg.DataError, errors.ProgramLimitExceeded, UnicodeEncodeError)):
            return UsageError(f"{self.label} cannot store this key or number: {said}")
        if unsure:
            return OutcomeUnknown(
                f"{self.label} was sent a change and did not answer: {said}. It may or may not"
                " have landed; reading the record again tells."
            )
        return StoreUnavailable(f"{self.label} did not do it: {said}. Nothing was changed.")

    def _setup_required(self) -> SetupRequired:
        return SetupRequired(
            f"Table {self._table} is not there yet in {self.label}. Nothing was read or changed."
            " Call store.setup() once, or run `remit-gates setup URL`."
        )


def _lends(source: Any, colour: Colour) -> bool:
    if not hasattr(source, "getconn"):
        return False
    kind = getattr(source, "connection_class", None)
    return isinstance(kind, type) and issubclass(kind, colour.connection)


def _harmless(error: Exception, lost: bool, sent: bool, call: Call[Any]) -> bool:
    """Whether to send `call` again after `error`."""
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return True
    # A server that hangs would hang again, and the caller has waited long enough.
    return lost and not isinstance(error, TimedOut) and (call.repeatable or not sent)


def _qualified(name: str, schema: str | None) -> str:
    place = () if schema is None else (schema,)
    return sql.Identifier(*place, name).as_string(None)


def _composed(table: str, schema: str | None) -> dict[str, bytes]:
    """The statements with the names in place, ready to be sent."""
    quoted = {
        "table": _qualified(table, schema),
        "meta": _qualified(META, schema),
        "schema": _qualified(schema or "public", None),
    }
    return {name: text.format(**quoted).encode() for name, text in statements("postgres").items()}
