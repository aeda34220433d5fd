"""Records in the order of their keys, out of a database that has none.

A sweep looks at every key of every server and keeps the first of those that it looks for;
another one follows for those after them. So memory is bounded however many records there
are, at the price of one sweep for each `SWEEP` of them.
"""

from __future__ import annotations

from typing import Final

from remit_gates._model import RunKey
from remit_gates.stores._calls import PAGE
from remit_gates.stores._protocol import Entry
from remit_gates.stores._redis_flows import Flows
from remit_gates.stores._redis_keys import Name
from remit_gates.stores._steps import Steps


SWEEP: Final = 50_000
"""Keys that are kept of one sweep."""


class Scan:
    """One scan; see `Store.scan` for what it is told."""

    def __init__(
        self,
        flows: Flows,
        framework: str | None,
        namespace: str | None,
        after: RunKey | None,
        claimed: bool | None,
        idle: float | None,
    ) -> None:
        self._flows = flows
        self._framework = framework
        self._namespace = namespace
        self._after = after
        self._claimed = claimed
        self._idle = idle
        self._found: list[RunKey] = []
        self._more = True

    def page(self) -> Steps[list[Entry] | None]:
        """The next few records, of which none may fit; None at the end."""
        if not self._found and self._more:
            self._found = yield from self._sweep()
            self._more = len(self._found) == SWEEP
            # The next is taken from the end.
            self._found.reverse()
        if not self._found:
            return None
        runs = [self._found.pop() for _ in range(min(PAGE, len(self._found)))]
        self._after = runs[-1]
        entries = yield from self._flows.entries(runs)
        return [entry for entry in entries if self._fits(entry)]

    def _fits(self, entry: Entry) -> bool:
        if self._claimed is not None and self._claimed != (entry.snapshot.record.claim is not None):
            return False
        return self._idle is None or entry.snapshot.now - entry.updated > self._idle

    def _sweep(self) -> Steps[list[RunKey]]:
        """The first `SWEEP` runs after the last that was told, in order."""
        name = self._flows.keys.name
        after: Name | None = None
        if self._after is not None:
            after = (self._after.framework, self._after.namespace, self._after.run)
        kept: set[Name] = set()
        # Nothing behind this one can be among the first any more.
        last: Name | None = None
        for node in (yield from self._flows.primaries()):
            cursor, more = 0, True
            while more:
                cursor, keys = yield from self._flows.sweep(
                    node, cursor, self._framework, self._namespace
                )
                more = cursor != 0
                for run in filter(None, map(name, keys)):
                    if (after is None or run > after) and (last is None or run < last):
                        kept.add(run)
                if len(kept) > 2 * SWEEP:
                    first = sorted(kept)[:SWEEP]
                    kept, last = set(first), first[-1]
        return [RunKey(*run) for run in sorted(kept)[:SWEEP]]


class Prune:
    """Forgets what is old; see `Store.prune`."""

    def __init__(self, flows: Flows, older_than: float) -> None:
        self._flows = flows
        self._older_than = older_than

    def all(self) -> Steps[int]:
        gone = 0
        for node in (yield from self._flows.primaries()):
            cursor, more = 0, True
            while more:
                cursor, keys = yield from self._flows.sweep(node, cursor, None, None)
                more = cursor != 0
                records = [key for key in keys if self._flows.keys.name(key) is not None]
                gone += yield from self._flows.prune(records, self._older_than)
        return gone
