"""What a gated persistence does, method by method: it looks, claims, and only then loads, so
that losers never write; and what has lost its claim writes nothing."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from remit_gates._claim import ActiveClaim
from remit_gates._drive import adrive
from remit_gates._model import Reason
from remit_gates.errors import ClaimLost, Superseded, UsageError
from remit_gates.pydantic_graph._binding import KEEPS_IDS, Binding, fresh_id
from remit_gates.pydantic_graph._hold import Hold, loaded_here
from remit_gates.pydantic_graph._locks import unlocked
from remit_gates.pydantic_graph._pauses import OPEN, Loaded, Request


claim_here: ContextVar[ActiveClaim | None] = ContextVar("remit_gates_graph_claim", default=None)
"""The claim of the node that the calling code belongs to."""


class Access:
    """One user of a persistence: all who share it before a run, or one run.

    Args:
        binding: The gate.
        options: The options of the deliveries that come this way.
        viewed: Whether it is a run's, whose end will be told.
    """

    def __init__(self, binding: Binding, options: Request, *, viewed: bool = False) -> None:
        self.binding = binding
        self.options = options
        self.viewed = viewed
        self._holds: list[Hold] = []

    @property
    def hold(self) -> Hold | None:
        """What is claimed here."""
        holds = self._holds
        return holds[-1] if holds else None

    def keep(self, hold: Hold) -> Hold:
        """Have `hold` until it is left, or until this is forgotten."""
        hold.kept_by(self)
        self._holds.append(hold)
        return hold

    def hand_over(self, node: Any, state: Any) -> Hold | None:
        """What was loaded here for a run of `node` on `state`, to one taker only."""
        hold = self.hold
        if hold is None or not hold.fits(node, state):
            return None
        try:
            self._holds.remove(hold)
        except ValueError:  # somebody was faster
            return None
        return hold

    async def leave(self) -> None:
        """Give back what is held."""
        while self._holds:
            await self._holds.pop().leave()

    async def load_next(self) -> Any:
        claim = await self.binding.admit(self.options)
        if claim is None:
            return None
        try:
            snapshot = await unlocked(
                self.binding.inner, claim, lambda: self.binding.take(claim.passage.loaded)
            )
        except BaseException:
            await self.binding.leave(claim, None)
            raise
        if snapshot is None:
            await self.binding.leave(claim, None)
            raise Superseded(
                f"{claim.run}: somebody without a gate took the node that was to run next."
                " Nothing ran here. Gate every worker.",
                reason=Reason.SUPERSEDED,
                run=claim.run,
                pauses=claim.pauses,
            )
        # Run by itself, the node goes on from this snapshot, and not from another one.
        snapshot.node.set_snapshot_id(snapshot.id)
        loaded_here.set(self.keep(Hold(self.binding, claim, snapshot)))
        return snapshot

    async def load_all(self) -> Any:
        snapshots = await self.binding.load_all()
        newest = Loaded(snapshots).newest
        if newest is not None and newest.kind == "node":
            newest.node.set_snapshot_id(newest.id)
        return snapshots

    async def snapshot_node_if_new(self, snapshot_id: str, state: Any, node: Any) -> None:
        hold = await self._held(snapshot_id)
        await self._fence(hold)
        newest = hold.claim.passage.loaded.newest
        if hold.ran or hold.snapshot is not None or newest is None or newest.kind != "node":
            pass
        elif newest.id == snapshot_id and newest.status not in OPEN:
            # It has begun before, and there is no way back for its snapshot.
            node = copy.copy(node)
            node.set_snapshot_id(fresh_id(node))
            hold.instead[snapshot_id] = node.get_snapshot_id()
            inner = self.binding.inner
            await unlocked(inner, hold.claim, lambda: inner.snapshot_node(state, node))
            return
        elif newest.id != snapshot_id and newest.status == "created":
            # What the node takes the place of is not to be served to anybody later.
            while (passed := await self.binding.inner.load_next()) is not None:
                if passed.id == newest.id:
                    break
        self.binding.begins_here(snapshot_id)
        await self.binding.inner.snapshot_node_if_new(snapshot_id, state, node)

    async def snapshot_node(self, state: Any, node: Any) -> None:
        hold = self.hold
        after = node.get_snapshot_id()
        if hold is None or not hold.ran:
            self.binding.begins_here(after)
            await self.binding.inner.snapshot_node(state, node)
            return
        await self._fence(hold)
        await self.binding.inner.snapshot_node(state, node)
        hold.after = after
        await self._left_unless_viewed()

    async def snapshot_end(self, state: Any, end: Any) -> None:
        hold = self.hold
        if hold is not None:
            await self._fence(hold)
        await self.binding.inner.snapshot_end(state, end)
        if hold is not None:
            hold.after, hold.over = end.get_snapshot_id(), True
            await self._left_unless_viewed()

    @asynccontextmanager
    async def record_run(self, snapshot_id: str) -> AsyncIterator[None]:
        hold = await self._held(snapshot_id)
        await self._same_run(hold)
        await self._fence(hold)
        recorded = self.binding.inner.record_run(hold.instead.get(snapshot_id, snapshot_id))
        await recorded.__aenter__()
        hold.ran, hold.failed, hold.after = hold.ran + 1, None, None
        token = claim_here.set(hold.claim)
        try:
            yield
            await self._fence(hold)
        except BaseException as error:
            hold.failed = type(error).__name__
            if isinstance(error, ClaimLost):
                # Whoever has the claim now has the snapshot too. A persistence records no
                # end for a node that is cancelled.
                lost = asyncio.CancelledError()
                with suppress(asyncio.CancelledError):
                    await recorded.__aexit__(type(lost), lost, None)
                await self._left_unless_viewed()
                raise
            try:
                if not await recorded.__aexit__(type(error), error, error.__traceback__):
                    raise
            finally:
                await self._left_unless_viewed()
        else:
            await recorded.__aexit__(None, None, None)
        finally:
            with suppress(ValueError):
                claim_here.reset(token)

    async def _left_unless_viewed(self) -> None:
        """Give back what is held by a run that was made by hand: nobody will tell when it is
        left, so that it holds its claim for one node at a time."""
        if not self.viewed:
            await self.leave()

    async def _held(self, node: str) -> Hold:
        """What is claimed here, or a claim for `node`."""
        hold = self.hold
        if hold is None:
            claim = await self.binding.admit(replace(self.options, node=node))
            if claim is None:
                raise AssertionError("a node is granted or refused")
            hold = self.keep(Hold(self.binding, claim))
        return hold

    async def _fence(self, hold: Hold) -> None:
        if not hold.claim.provably_alive:
            await adrive(self.binding.keeper.fence(hold.claim), self.binding.port)

    async def _same_run(self, hold: Hold) -> None:
        """Return only if the run is still called what it was called when it was claimed, for
        else another resume would not find the claim. Looked at before the second node."""
        binding = self.binding
        named = binding.settings.run is not None or isinstance(binding.inner, KEEPS_IDS)
        if hold.ran != 1 or named or binding.run(await binding.look()) == hold.claim.run:
            return
        raise UsageError(
            f"{hold.claim.run}: {type(binding.inner).__name__} does not keep the first snapshot"
            " of a run, which the run is called after, so that its claim would not be found."
            " The next node was not run. Pass run= to gate()."
        )
