"""The gate for pydantic-graph and pydantic-ai.

`gate(persistence)` is a persistence of pydantic-graph (0.8 to 1.x), gated: of several resumes
of one run, one is served. `ConsumeOnce` is a capability of pydantic-ai (1.80 and later): of
several runs that answer the same deferred tool calls, one is served. Each other one gets a
`ResumeRefused` before any node or tool runs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from remit_gates._policy import Policy
from remit_gates.errors import UsageError
from remit_gates.pydantic_graph import _versions


if TYPE_CHECKING:
    from remit_gates.pydantic_graph._capability import ConsumeOnce as ConsumeOnce


__all__ = ["ConsumeOnce", "gate", "release"]

PersistenceT = TypeVar("PersistenceT")


def gate(
    persistence: PersistenceT,
    *,
    store: Any = None,
    policy: Policy = Policy(),
    namespace: str = "",
    run: str | None = None,
    pause: str | None = None,
    delivery: str | None = None,
    actor: str | None = None,
) -> PersistenceT:
    """`persistence`, gated. The object that was passed stays as it is.

    Args:
        persistence: Any `BaseStatePersistence`. One that is gated already is returned as it
            is, or, with `pause`, `delivery` or `actor`, as a delivery of its own.
        store: Where the records live: a URL, a driver connection or pool, or a store. None
            for a file beside that of a `FileStatePersistence`, or for the memory of this
            process where the persistence lives there itself and is empty.
        policy: The choices that the protocol leaves open.
        namespace: One's own partition of a shared store.
        run: The name of the run, the same for everybody who resumes it. None for the path of
            a `FileStatePersistence`, or else for the id of the run's first snapshot.
        pause: The snapshot id that the person was shown. A resume that comes when the run
            has gone on to another pause is then refused.
        delivery: The delivery id: a redelivery is recognised by it.
        actor: Who answers; kept in the record.

    Raises:
        UsageError: An argument cannot mean anything, or a store is needed.
        MissingExtra: pydantic-graph is not installed.
        UnsupportedVersion: The installed one cannot be gated.
    """
    _versions.graph()
    from remit_gates.pydantic_graph._persistence import gated

    made: PersistenceT = gated(
        persistence,
        store=store,
        policy=policy,
        namespace=namespace,
        run=run,
        pause=pause,
        delivery=delivery,
        actor=actor,
    )
    return made


async def release(
    persistence: Any,
    *,
    pause: str | None = None,
    actor: str | None = None,
    reason: str | None = None,
) -> bool:
    """Let what a failed or abandoned resume left closed be resumed again.

    Args:
        persistence: The gated persistence.
        pause: Only this pause; None for every unfinished one.
        actor: Who releases; kept in the record.
        reason: Why; kept in the record.

    Returns:
        Whether there was anything to release.

    Raises:
        InProgress: A holder is alive; nothing was changed.
        UsageError: The persistence is not gated.
    """
    _versions.graph()
    from remit_gates.pydantic_graph._persistence import released

    return await released(persistence, pause, actor, reason)


def _hook() -> None:
    """Hook into pydantic-graph, where it has persistence. Done here, because a call such as
    `graph.iter(…, persistence=gate(…))` has looked `iter` up before it calls `gate`."""
    from remit_gates.pydantic_graph._graph import install

    # What is not there, or cannot be gated, is told by `gate`.
    with suppress(UsageError):
        install()


_hook()


def __getattr__(name: str) -> Any:
    # Either framework may be installed without the other.
    if name == "ConsumeOnce":
        _versions.ai()
        from remit_gates.pydantic_graph._capability import ConsumeOnce

        return ConsumeOnce
    raise AttributeError(name)
