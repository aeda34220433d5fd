"""The gate for LangGraph: `builder.compile(checkpointer=gate(saver))`.

Of several deliveries to one thread, one is served, and each other one gets a
`ResumeRefused` before any node runs and before its answer is recorded.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from remit_gates.errors import MissingExtra, UsageError


try:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.memory import InMemorySaver
except ImportError:
    raise MissingExtra(
        "LangGraph is not installed. Install it with: pip install 'remit-gates[langgraph]'"
    ) from None

from remit_gates._drive import adrive, drive
from remit_gates._gate import only_gated_once
from remit_gates._gate import release as _release
from remit_gates._history import Attempt
from remit_gates._model import RunKey
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates._ticket import Secret, keys
from remit_gates.langgraph._binding import Binding
from remit_gates.langgraph._looking import atickets, tickets
from remit_gates.langgraph._loop import gated, install
from remit_gates.langgraph._run import claim_in_node
from remit_gates.langgraph._saver import gated_type
from remit_gates.langgraph._tickets import Ticket
from remit_gates.langgraph._validate import checker
from remit_gates.langgraph._versions import ORDINAL_SINCE, installed
from remit_gates.stores.memory import MemoryStore


__all__ = [
    "Ticket",
    "ahistory",
    "atickets",
    "claim_in_node",
    "gate",
    "history",
    "release",
    "tickets",
]

SaverT = TypeVar("SaverT", bound="BaseCheckpointSaver[Any]")


def gate(
    saver: SaverT,
    *,
    store: Any = None,
    policy: Policy = Policy(),
    namespace: str = "",
    validate: Any = None,
    secret: Secret = None,
) -> SaverT:
    """`saver`, gated. The saver that was passed stays as it is.

    Args:
        saver: Any checkpoint saver.
        store: Where the records live: a URL, a driver connection or pool, or a store.
            None for the saver's own database.
        policy: The choices that the protocol leaves open.
        namespace: One's own partition of a shared store.
        validate: A pydantic model, a TypedDict, or a function of the state that raises:
            a state that does not fit is refused before it is persisted.
        secret: A key that tickets are signed with, the same for all workers. Of several,
            the first one signs, and a ticket that was signed with any of them is taken.

    Raises:
        UsageError: The saver's database is not one that is known, and there is no
            `store`; or an argument cannot mean anything.
        MissingExtra: An optional dependency is not installed.
        UnsupportedVersion: The installed LangGraph cannot be gated.
    """
    if gated(saver):
        only_gated_once(
            saver,
            store=store,
            policy=policy,
            namespace=namespace,
            validate=validate,
            secret=secret,
        )
        return saver
    if not isinstance(saver, BaseCheckpointSaver):
        raise UsageError(
            f"gate() takes a checkpoint saver, not {type(saver).__name__}. Pass the saver"
            " itself, then compile the graph with what gate() returns. Nothing was wrapped."
        )
    check = checker(validate)
    found = _inferred(saver) if store is None else store
    awaited = type(saver).aget_tuple is not BaseCheckpointSaver.aget_tuple
    ordinal = installed() >= ORDINAL_SINCE
    binding = Binding(
        found,
        policy,
        namespace,
        awaited=awaited,
        ordinal=ordinal,
        check=check,
        secret=keys(secret),
        loop=getattr(saver, "loop", None),
    )
    install()
    cls = gated_type(type(saver))
    made: SaverT = object.__new__(cls)
    made.__dict__ = saver.__dict__
    made._remit = binding  # type: ignore[attr-defined]
    return made


def _inferred(saver: BaseCheckpointSaver[Any]) -> Any:
    """The store in the saver's own database."""
    if isinstance(saver, InMemorySaver):
        # Whoever shares the saver's state must share its records too.
        return vars(saver).setdefault("_remit_store", MemoryStore())
    # SQLite's and Postgres's savers call it `conn`, those of Redis `_redis`.
    for name in ("conn", "_redis"):
        conn = getattr(saver, name, None)
        if conn is not None:
            return conn
    raise UsageError(
        f"gate() does not know the database of {type(saver).__name__}. Pass store=: a URL"
        " (sqlite:///claims.db, postgresql://…, redis://…), a driver connection, client or"
        " pool, or a store that every worker shares. Nothing was wrapped."
    )


def release(
    graph: Any,
    config: Any,
    *,
    pause: str | None = None,
    actor: str | None = None,
    reason: str | None = None,
) -> bool:
    """Re-open what a failed or abandoned delivery left closed on a thread.

    Args:
        graph: The compiled graph, or its gated saver.
        config: The thread's config.
        pause: Only this pause; None for every unfinished one.
        actor: Who releases; kept in the record.
        reason: Why; kept in the record.

    Returns:
        Whether there was anything to re-open.

    Raises:
        InProgress: A holder is alive; nothing was changed.
        UsageError: The graph is not gated.
    """
    binding = _binding(graph, "release")
    return _release(
        binding.store,
        str(config["configurable"]["thread_id"]),
        framework="langgraph",
        namespace=binding.key("").namespace,
        pause=pause,
        actor=actor,
        reason=reason,
    )


def history(graph: Any, config: Any) -> tuple[Attempt, ...]:
    """Who answered what on a thread, and when: each attempt that the record remembers, in
    the order in which they began. Nothing is claimed or changed.

    Args:
        graph: The compiled graph, or its gated saver.
        config: The thread's config.

    Raises:
        UsageError: The graph is not gated.
        StoreError: The store could not be read.
    """
    binding = _binding(graph, "history")
    return drive(binding.keeper.history(_thread(binding, config)), StorePort(binding.store))


async def ahistory(graph: Any, config: Any) -> tuple[Attempt, ...]:
    """As `history`, for an async saver."""
    binding = _binding(graph, "ahistory")
    flow = binding.keeper.history(_thread(binding, config))
    return await adrive(flow, StorePort(binding.astore, asyncio.sleep))


def _binding(graph: Any, name: str) -> Binding:
    saver = getattr(graph, "checkpointer", graph)
    if not gated(saver):
        raise UsageError(f"{name}() takes a graph that was compiled with a gated saver.")
    binding: Binding = saver._remit
    return binding


def _thread(binding: Binding, config: Any) -> RunKey:
    return binding.key(str(config["configurable"]["thread_id"]))
