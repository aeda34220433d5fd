"""Stores in Redis and Valkey: one hash a run, one script an operation, the server's clock.

Each script looks at one key, so a cluster runs it where the key is; no record ever expires.
Every operation is one flow of driver calls, performed by either colour.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates.errors import MissingExtra, UsageError
from remit_gates.stores._protocol import AsyncStore, Entry, Store
from remit_gates.stores._steps import aperform, perform
from remit_gates.stores.lua import PREFIX


try:
    from remit_gates.stores._redis_flows import Flows
    from remit_gates.stores._redis_links import ASYNC, SYNC, Colour
    from remit_gates.stores._redis_scan import Prune, Scan
except ImportError as error:
    if error.name is None or not error.name.startswith("redis"):
        raise
    raise MissingExtra(
        "A store in Redis or Valkey needs redis-py: pip install 'remit-gates[redis]'"
    ) from error


class _Connected:
    """What the stores of both colours share: all but the waiting."""

    _colour: ClassVar[Colour]

    def __init__(
        self,
        source: Any,
        *,
        prefix: str = PREFIX,
        size: int = 4,
        timeout: float = 5.0,
        replicas: int = 0,
    ) -> None:
        if replicas < 0 or size < 1 or timeout <= 0:
            raise UsageError("`replicas` is 0 or more, `size` 1 or more, `timeout` more than 0.")
        self._flows = Flows(self._colour, source, prefix, size, timeout, replicas)
        self._renewer: RedisStore | None = None
        self._options: dict[str, Any] = {
            "prefix": prefix,
            "size": size,
            "timeout": timeout,
            "replicas": replicas,
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._flows.label}>"


class RedisStore(_Connected, Store):
    """Records in a Redis or Valkey database, or a cluster, for sync callers.

    Nothing has to be set up. A client or pool is only asked for the way to its database: the
    store has connections of its own, which never send a swap twice.

    Args:
        source: A URL (`redis://`, `rediss://`, `valkey://`, `valkeys://`, `unix://`; with
            `+cluster` before the colon, that of any server of a cluster); or a client or pool
            of redis-py, of either colour, for a server or a cluster.
        prefix: How the key of every record begins.
        size: How many connections the store opens to each server at most.
        timeout: Seconds that an operation waits for a connection, and then for an answer.
        replicas: How many replicas must have acknowledged a claim before it counts. With
            fewer, the claim is taken back and `StoreUnavailable` is raised. 0 does not ask.

    Raises:
        UsageError: `source` leads to no database.
    """

    _colour = SYNC

    def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return perform(self._flows.read(run))

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `Store.swap`. How durable it is, is the server's setting; see `replicas`."""
        return perform(self._flows.swap(run, expected, record, lease, durable))

    def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return perform(self._flows.renew(run, token, lease))

    def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return perform(self._flows.delete(run))

    def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> Iterator[Entry]:
        """See `Store.scan`. Redis has no order, so every key is looked at before the first
        record is told, and as many are kept in memory as `_redis_scan.SWEEP` says."""
        scan = Scan(self._flows, framework, namespace, after, claimed, idle)
        while (page := perform(scan.page())) is not None:
            yield from page

    def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        prune = Prune(self._flows, older_than)
        return perform(prune.all())

    def setup(self) -> None:
        """See `Store.setup`. Nothing depends on its having been called."""
        perform(self._flows.setup())

    def misconfigured(self) -> tuple[str, ...]:
        """Which settings of the server, or of each of a cluster, can lose a claim that was
        acknowledged, and the mend of each; empty when all is well.

        Raises:
            StoreUnavailable: The server cannot be reached, or may not be asked.
        """
        return perform(self._flows.misconfigured())

    def close(self) -> None:
        """See `Store.close`. A later call opens anew."""
        perform(self._flows.close())

    def renewer(self) -> Store:
        """See `Store.renewer`. No run ever has one of its connections."""
        return self


class AsyncRedisStore(_Connected, AsyncStore):
    """Records in a Redis or Valkey database, or a cluster, for async callers, of any event
    loop. See `RedisStore`, whose arguments it takes; there are `size` connections to each
    server in each event loop. They are closed by `close`, or when the loop shuts down its
    asynchronous generators, as `asyncio.run` has it do."""

    _colour = ASYNC

    async def read(self, run: RunKey) -> Snapshot:
        """See `Store.read`."""
        return await aperform(self._flows.read(run))

    async def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        """See `RedisStore.swap`."""
        return await aperform(self._flows.swap(run, expected, record, lease, durable))

    async def renew(self, run: RunKey, token: int, lease: float) -> bool:
        """See `Store.renew`."""
        return await aperform(self._flows.renew(run, token, lease))

    async def delete(self, run: RunKey) -> bool:
        """See `Store.delete`."""
        return await aperform(self._flows.delete(run))

    async def scan(
        self,
        framework: str | None = None,
        namespace: str | None = None,
        *,
        after: RunKey | None = None,
        claimed: bool | None = None,
        idle: float | None = None,
    ) -> AsyncIterator[Entry]:
        """See `RedisStore.scan`."""
        scan = Scan(self._flows, framework, namespace, after, claimed, idle)
        while (page := await aperform(scan.page())) is not None:
            for entry in page:
                yield entry

    async def prune(self, older_than: float) -> int:
        """See `Store.prune`."""
        return await aperform(Prune(self._flows, older_than).all())

    async def setup(self) -> None:
        """See `RedisStore.setup`."""
        await aperform(self._flows.setup())

    async def misconfigured(self) -> tuple[str, ...]:
        """See `RedisStore.misconfigured`."""
        return await aperform(self._flows.misconfigured())

    async def close(self) -> None:
        """See `Store.close`. It closes the connections of this event loop; a later call
        opens anew."""
        await aperform(self._flows.close())
        if self._renewer is not None:
            self._renewer.close()

    def renewer(self) -> Store:
        """See `Store.renewer`."""
        if self._renewer is None:
            self._renewer = RedisStore(self._flows.address, **self._options)
        return self._renewer
