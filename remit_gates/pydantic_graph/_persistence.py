"""A gated persistence is a proxy of the persistence that it was made from.

Inside it only the public methods of `BaseStatePersistence` are called. A run of a graph gets
a view of its own, because a claim belongs to a run and not to an object, which several share.
"""

from __future__ import annotations

import copy
from contextlib import AbstractAsyncContextManager
from typing import Any

import wrapt
from pydantic_graph.persistence import BaseStatePersistence, NodeSnapshot

from remit_gates._drive import adrive
from remit_gates._gate import find_claims_with, only_gated_once
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._refusal import refusal
from remit_gates.errors import UsageError
from remit_gates.pydantic_graph._access import Access, claim_here
from remit_gates.pydantic_graph._binding import VERBS, Binding, Settings, here, inferred
from remit_gates.pydantic_graph._graph import gated as is_gated
from remit_gates.pydantic_graph._graph import install
from remit_gates.pydantic_graph._pauses import Request


class GatedPersistence(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A persistence with the gate before it, or the view of it that one run has."""

    def __init__(self, access: Access) -> None:
        super().__init__(access.binding.inner)
        self._self_access = access

    async def load_next(self) -> NodeSnapshot[Any, Any] | None:
        """The node to run next, once its run is claimed; None for a run that has not begun or
        has ended. See `BaseStatePersistence`.

        Raises:
            ResumeRefused: Another resume is or was served.
        """
        found: NodeSnapshot[Any, Any] | None = await self._self_access.load_next()
        return found

    async def load_all(self) -> list[Any]:
        """The history. Looking claims nothing. See `BaseStatePersistence`."""
        found: list[Any] = await self._self_access.load_all()
        return found

    async def snapshot_node_if_new(self, snapshot_id: str, state: Any, next_node: Any) -> None:
        """Claim the run for a node that the caller brings. See `BaseStatePersistence`.

        Raises:
            ResumeRefused: Another run is in progress, or the node is of the past.
        """
        await self._self_access.snapshot_node_if_new(snapshot_id, state, next_node)

    async def snapshot_node(self, state: Any, next_node: Any) -> None:
        """See `BaseStatePersistence`.

        Raises:
            ClaimLost: The run was taken over; nothing was stored.
        """
        await self._self_access.snapshot_node(state, next_node)

    async def snapshot_end(self, state: Any, end: Any) -> None:
        """See `BaseStatePersistence`.

        Raises:
            ClaimLost: The run was taken over; nothing was stored.
        """
        await self._self_access.snapshot_end(state, end)

    def record_run(self, snapshot_id: str) -> AbstractAsyncContextManager[None]:
        """Run a node while the claim is certainly held. See `BaseStatePersistence`.

        Raises:
            ResumeRefused: Another run is in progress.
            ClaimLost: The run was taken over; the node did not begin.
        """
        recorded: AbstractAsyncContextManager[None] = self._self_access.record_run(snapshot_id)
        return recorded

    def _remit_view(self, *started: Any) -> GatedPersistence:
        """The view of a run that loads its node, or that is started with a node and a state:
        it takes over the claim of the load that came before, if there was one."""
        access: Access = self._self_access
        hold = access.hand_over(*started) if started else None
        mine = Access(access.binding, access.options, viewed=True)
        if hold is not None:
            mine.keep(hold)
        return GatedPersistence(mine)

    def _remit_copy(self, inner: Any) -> GatedPersistence:
        access: Access = self._self_access
        binding = Binding(inner, access.binding.settings, access.binding.mine)
        return GatedPersistence(Access(binding, access.options))

    def __copy__(self) -> GatedPersistence:
        return self._remit_copy(copy.copy(self.__wrapped__))

    def __deepcopy__(self, memo: dict[int, Any]) -> GatedPersistence:
        return self._remit_copy(copy.deepcopy(self.__wrapped__, memo))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        access: Access = self._self_access
        binding = access.binding
        return _rebuilt, (self.__wrapped__, binding.settings, binding.mine, access.options)

    def __repr__(self) -> str:
        return f"<gated {self.__wrapped__!r}>"


def _rebuilt(inner: Any, settings: Settings, mine: set[str], options: Request) -> GatedPersistence:
    _install()
    return GatedPersistence(Access(Binding(inner, settings, mine), options))


def _install() -> None:
    install()
    find_claims_with(_claim_here)


def _claim_here() -> Any:
    return claim_here.get()


def gated(
    persistence: Any,
    *,
    store: Any,
    policy: Policy,
    namespace: str,
    run: str | None,
    pause: str | None,
    delivery: str | None,
    actor: str | None,
) -> Any:
    """See `remit_gates.pydantic_graph.gate`."""
    options = Request(pause=pause, delivery=delivery, actor=actor)
    if is_gated(persistence):
        only_gated_once(persistence, store=store, policy=policy, namespace=namespace, run=run)
        binding = persistence._self_access.binding
        return persistence if options == Request() else GatedPersistence(Access(binding, options))
    if not isinstance(persistence, BaseStatePersistence):
        raise UsageError(
            f"gate() takes a state persistence, not {type(persistence).__name__}. Pass the"
            " persistence, then hand what gate() returns to the graph. Nothing was wrapped."
        )
    _install()
    process = None
    if store is None:
        store = inferred(persistence)
        process = here() if store == "memory://" else None
    settings = Settings(store, policy, namespace, run, process)
    return GatedPersistence(Access(Binding(persistence, settings), options))


async def released(
    persistence: Any, pause: str | None, actor: str | None, reason: str | None
) -> bool:
    """See `remit_gates.pydantic_graph.release`."""
    if not is_gated(persistence):
        raise UsageError("release() takes a persistence that was made by gate().")
    binding: Binding = persistence._self_access.binding
    run = binding.run(await binding.look())
    if run is None:
        return False
    result = await adrive(binding.keeper.release(run, pause, actor, reason), binding.port)
    if isinstance(result, Denied):
        raise refusal(result, VERBS)
    return result
