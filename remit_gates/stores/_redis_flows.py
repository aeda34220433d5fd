"""The operations of a Redis store as flows of driver calls, the same for both colours.

A write whose answer was lost is never sent again, and its outcome is called unknown; only
what certainly did not reach the server, or was refused by it, counts as not done.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from redis.exceptions import NoScriptError, ResponseError

from remit_gates._codec import encode
from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import (
    OutcomeUnknown,
    RemitError,
    SchemaMismatch,
    StoreUnavailable,
)
from remit_gates.stores._protocol import Entry
from remit_gates.stores._redis_address import Address, Node, address
from remit_gates.stores._redis_health import faults
from remit_gates.stores._redis_keys import Keys, entry, micros, snapshot
from remit_gates.stores._redis_links import Colour, Command, Links, Lost, Unsent
from remit_gates.stores._redis_routes import Routes
from remit_gates.stores._steps import Steps
from remit_gates.stores.lua import SCHEMA, script


TRIES: Final = 3
"""How often an operation is sent at most, where sending it again is safe."""

logger: Final = logging.getLogger("remit_gates")


class Flows:
    """What a Redis store does, short of doing it.

    Args:
        colour: Of the connections.
        source: What leads to the database.
        prefix: How every key begins.
        size: How many connections to open at most to each server.
        limit: Seconds that any wait takes at most.
        replicas: How many replicas must have a durable swap before it counts.
    """

    def __init__(
        self, colour: Colour, source: Any, prefix: str, size: int, limit: float, replicas: int
    ) -> None:
        self.address: Address = address(source)
        self.label = self.address.label
        self.keys = Keys(prefix)
        self._links = Links(colour, self.address, size, limit)
        self._routes = Routes(self._links, self.address.seeds)
        self._replicas = replicas
        # WAIT must be over before the driver takes the server for one that hangs.
        self._patience = int(limit * 500)
        self._sent: set[str] = set()
        self._checked = False

    def read(self, run: RunKey) -> Steps[Snapshot]:
        row = yield from self._script(self.keys.of(run), "read", repeatable=True)
        return snapshot(row)

    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> Steps[int | None]:
        key = self.keys.of(run)
        args = (
            "" if expected is None else expected,
            "" if record.claim is None else record.claim.token,
            "" if lease is None else micros(lease),
            encode(record),
        )
        if not (durable and self._replicas):
            version = yield from self._script(key, "swap", *args, 0)
            return None if version is None else int(version)
        reply, copies = yield from self._waited(key, *args, 1)
        if reply is None:
            return None
        version, *before = reply
        if not isinstance(copies, int) or copies < self._replicas:
            yield from self._undo(run, key, version, before, copies)
        return int(version)

    def renew(self, run: RunKey, token: int, lease: float) -> Steps[bool]:
        args = (token, micros(lease))
        return bool((yield from self._script(self.keys.of(run), "renew", *args, repeatable=True)))

    def delete(self, run: RunKey) -> Steps[bool]:
        key = self.keys.of(run)
        return bool((yield from self._call(key, [("DEL", key)], repeatable=False))[0])

    def sweep(
        self, node: Node | None, cursor: int, framework: str | None, namespace: str | None
    ) -> Steps[tuple[int, list[bytes]]]:
        """Some keys of `node`, and the cursor to go on with; 0 at the end."""
        pattern = self.keys.pattern(framework, namespace)
        command = ("SCAN", cursor, "MATCH", pattern, "COUNT", 2000)
        ((after, found),) = yield from self._on(node, [command])
        return int(after), found

    def primaries(self) -> Steps[list[Node | None]]:
        """The servers that a sweep goes to."""
        yield from self._check()
        try:
            return (yield from self._routes.primaries())
        except Unsent as error:
            raise self._unreached(error) from self._cause(error)

    def entries(self, runs: Sequence[RunKey]) -> Steps[list[Entry]]:
        """The records of `runs`, as far as they are there, in the same order."""
        keys = {run: self.keys.of(run) for run in runs}
        rows = yield from self._each(list(keys.values()), "read")
        found = (entry(run, rows[key]) for run, key in keys.items())
        return [one for one in found if one is not None]

    def prune(self, keys: Sequence[bytes], older_than: float) -> Steps[int]:
        """Forget those of `keys` that are old and have no claim; how many."""
        gone = yield from self._each(keys, "prune", micros(older_than))
        return sum(gone.values())

    def setup(self) -> Steps[None]:
        self._checked = False
        yield from self._check()

    def misconfigured(self) -> Steps[tuple[str, ...]]:
        """What is wrong with the settings of the servers."""
        nodes = yield from self.primaries()
        return (yield from faults(nodes, self._on))

    def close(self) -> Steps[None]:
        yield from self._links.close()

    def _script(self, key: bytes, name: str, *args: Any, repeatable: bool = False) -> Steps[Any]:
        """The result of the script `name` on `key`."""
        yield from self._check()
        replies = yield from self._call(key, [self._command(name, key, args)], repeatable)
        if isinstance(replies[0], NoScriptError):
            # The server was started anew, or it is another one. Nothing ran.
            self._sent.discard(name)
            replies = yield from self._call(key, [self._command(name, key, args)], repeatable)
        self._sent.add(name)
        return replies[0]

    def _waited(self, key: bytes, *args: Any) -> Steps[list[Any]]:
        """A swap, and how many replicas have it, in one round trip."""
        yield from self._check()
        wait = ("WAIT", self._replicas, self._patience)
        replies = yield from self._call(key, [self._command("swap", key, args), wait], False)
        if isinstance(replies[0], NoScriptError):
            self._sent.discard("swap")
            replies = yield from self._call(key, [self._command("swap", key, args), wait], False)
        self._sent.add("swap")
        return replies

    def _undo(
        self, run: RunKey, key: bytes, version: bytes, before: list[Any], copies: Any
    ) -> Steps[None]:
        """Take back a swap that too few replicas have.

        Raises:
            StoreUnavailable: It is as if it had never been.
            OutcomeUnknown: It may stand.
        """
        old = [] if before[0] is None else before[1:]
        try:
            yield from self._script(key, "undo", version, *old)
        except StoreUnavailable as error:
            raise OutcomeUnknown(
                f"{self.label} has a claim on {run} that too few replicas have, and could not"
                f" take it back: {error} Reading the record again tells."
            ) from error
        raise StoreUnavailable(
            f"{self.label} has {copies if isinstance(copies, int) else 0} of the"
            f" {self._replicas} replicas that must have a claim. The claim on {run} was taken"
            " back, so nothing was changed. Look at the server's replication."
        )

    def _command(self, name: str, key: bytes, args: Sequence[Any]) -> Command:
        """A script by its digest where the server is known to have it, else in full: the
        first time costs no more round trips than any other."""
        found = script(name)
        if name in self._sent:
            return ("EVALSHA", found.sha, 1, key, *args)
        return ("EVAL", found.text, 1, key, *args)

    def _each(self, keys: Sequence[bytes], name: str, *args: Any) -> Steps[dict[bytes, Any]]:
        """The results of one script on many keys, by one round trip a server."""
        shares: dict[Node | None, list[bytes]] = {}
        results: dict[bytes, Any] = {}
        try:
            for key in keys:
                shares.setdefault((yield from self._routes.owner(key)), []).append(key)
            for node, share in shares.items():
                commands = [self._command(name, key, args) for key in share]
                replies = yield from self._links.exchange(node, commands)
                results.update(zip(share, replies, strict=True))
        except (Unsent, Lost):
            # Each by itself is sent as often as it may be, and to where it is by now.
            pass
        for key in keys:
            if key not in results or isinstance(results[key], ResponseError):
                results[key] = yield from self._script(key, name, *args, repeatable=True)
        return results

    def _call(self, key: bytes, commands: Sequence[Command], repeatable: bool) -> Steps[list[Any]]:
        """The replies to `commands`; the one place where redis-py's errors become ours."""
        tries = TRIES
        while True:
            tries -= 1
            try:
                replies = yield from self._routes.at(key, commands)
            except Unsent as error:
                raise self._unreached(error) from self._cause(error)
            except Lost as error:
                # A server that hangs would hang again, and the caller has waited enough.
                if repeatable and tries and not error.hung:
                    continue
                raise self._lost(error, repeatable) from self._cause(error)
            self._refuse(replies)
            return replies

    def _on(self, node: Node | None, commands: Sequence[Command]) -> Steps[list[Any]]:
        """The replies of one server to commands that change nothing."""
        try:
            try:
                replies = yield from self._links.exchange(node, commands)
            except Lost as error:
                if error.hung:
                    raise
                replies = yield from self._links.exchange(node, commands)
        except Unsent as error:
            raise self._unreached(error) from self._cause(error)
        except Lost as error:
            raise self._lost(error, True) from self._cause(error)
        self._refuse(replies)
        return replies

    def _refuse(self, replies: list[Any]) -> None:
        """Raise for what the server refused to do. It did nothing then."""
        refusal = replies[0]
        if not isinstance(refusal, ResponseError) or isinstance(refusal, NoScriptError):
            return
        said = self.address.said(refusal)
        if "WRONGTYPE" in said:
            raise SchemaMismatch(
                f"{self.label} has something else under the key of a record. Nothing was"
                " changed. Look at what else writes there, or give the store another prefix."
            )
        raise StoreUnavailable(
            f"{self.label} did not do it: {said}. Nothing was changed."
        ) from self.address.clean(refusal)

    def _check(self) -> Steps[None]:
        """Once: refuse a database of a newer release, mark one that is new, and say what is
        wrong with the server."""
        if self._checked:
            return
        marker = self.keys.marker
        (found,) = yield from self._call(marker, [("GET", marker)], repeatable=True)
        if found is None:
            commands = [("SET", marker, SCHEMA, "NX"), ("GET", marker)]
            found = (yield from self._call(marker, commands, repeatable=True))[1]
        if not isinstance(found, bytes) or not found.isdigit() or int(found) > SCHEMA:
            raise SchemaMismatch(
                f"The records at {marker.decode()} in {self.label} have schema"
                f" {found.decode(errors='replace') if isinstance(found, bytes) else found}, and"
                f" this release knows {SCHEMA} at most. Nothing was read or changed. Upgrade"
                " remit-gates."
            )
        self._checked = True
        yield from self._warn()

    def _warn(self) -> Steps[None]:
        """Say once a process what is wrong with the settings of the server."""
        if self.label in _WARNED:
            return
        _WARNED.add(self.label)
        try:
            wrong = yield from self.misconfigured()
        except RemitError:
            # What is asked for may be forbidden. The operation itself goes on.
            return
        for fault in wrong:
            logger.warning("%s can lose a claim that it acknowledged: %s", self.label, fault)

    def _unreached(self, error: Unsent) -> StoreUnavailable:
        said = self.address.said(error.__cause__ or error)
        return StoreUnavailable(f"{self.label} cannot be reached: {said}. Nothing was changed.")

    def _lost(self, error: Lost, repeatable: bool) -> RemitError:
        said = self.address.said(error.__cause__ or error)
        if repeatable:
            return StoreUnavailable(f"{self.label} did not answer: {said}. Ask it again.")
        return OutcomeUnknown(
            f"{self.label} was sent a change and did not answer: {said}. It may or may not"
            " have landed; reading the record again tells."
        )

    def _cause(self, error: Unsent | Lost) -> BaseException | None:
        cause = error.__cause__
        return None if cause is None else self.address.clean(cause)


_WARNED: Final[set[str]] = set()
"""The servers that were looked at in this process."""
