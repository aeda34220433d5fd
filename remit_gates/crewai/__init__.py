"""The gate for CrewAI: `@persist(gate(SQLiteFlowPersistence(path)))`.

Of several answers to one pause of a flow, one is served, and each other one gets a
`ResumeRefused` before any event, model call, method or write.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from remit_gates.errors import MissingExtra, UsageError


try:
    from crewai.flow.persistence import FlowPersistence, SQLiteFlowPersistence
except ImportError:
    raise MissingExtra(
        "CrewAI is not installed. Install it with: pip install 'remit-gates[crewai]'"
    ) from None

from remit_gates._gate import only_gated_once
from remit_gates._gate import release as _release
from remit_gates._model import Record, RunKey
from remit_gates._policy import Policy
from remit_gates._ticket import Secret, keys
from remit_gates.crewai._binding import Binding
from remit_gates.crewai._flow import install
from remit_gates.crewai._pauses import pause_of
from remit_gates.crewai._persistence import GatedPersistence, PausedId
from remit_gates.stores.sqlite import SqliteStore


__all__ = ["gate", "release", "ticket"]

PersistenceT = TypeVar("PersistenceT", bound=FlowPersistence)

# A persistence may be made, and gated, within a call of CrewAI's; so the hook comes before.
install()


def gate(
    persistence: PersistenceT,
    *,
    store: Any = None,
    policy: Policy = Policy(),
    namespace: str = "",
    secret: Secret = None,
) -> PersistenceT:
    """`persistence`, gated. The persistence that was passed stays as it is.

    Args:
        persistence: Any flow persistence.
        store: Where the records live: a URL, a driver connection or pool, or a store.
            None for the persistence's own database.
        policy: The choices that the protocol leaves open.
        namespace: One's own partition of a shared store.
        secret: A key that tickets are signed with, the same for all workers. Of several,
            the first one signs, and a ticket that was signed with any of them is taken.

    Raises:
        UsageError: The database of the persistence is not one that is known, and there is
            no `store`; or an argument cannot mean anything.
        MissingExtra: An optional dependency is not installed.
    """
    if _gated(persistence):
        only_gated_once(persistence, store=store, policy=policy, namespace=namespace, secret=secret)
        return persistence
    if not isinstance(persistence, FlowPersistence):
        raise UsageError(
            f"gate() takes a flow persistence, not {type(persistence).__name__}. Pass the"
            " persistence itself, then give CrewAI what gate() returns. Nothing was wrapped."
        )
    found = _inferred(persistence) if store is None else store
    binding = Binding(persistence, found, policy, namespace, keys(secret))
    return cast(PersistenceT, GatedPersistence(persistence, binding, store))


def _gated(persistence: object) -> bool:
    return isinstance(persistence, GatedPersistence)


def _inferred(persistence: FlowPersistence) -> Any:
    """The store in the database of the persistence."""
    if not isinstance(persistence, SQLiteFlowPersistence):
        raise UsageError(
            f"gate() does not know the database of {type(persistence).__name__}. Pass store=: a"
            " URL (sqlite:///claims.db, postgresql://…), a driver connection or pool, or a"
            " store that every worker shares. Nothing was wrapped."
        )
    # CrewAI asks a factory for a persistence time and again.
    path = str(Path(persistence.db_path).absolute())
    return _stores.get(path) or _stores.setdefault(path, _BesideFlows(path))


class _BesideFlows(SqliteStore):
    """The store in the file of CrewAI's own persistence. A claim in it need not wait for the
    disk: whoever may hold one is on this host and goes down with it, and before a listener
    runs, CrewAI deletes its row in the same file, and waits for the disk."""

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        return super().swap(run, expected, record, lease, durable=False)


_stores: WeakValueDictionary[str, _BesideFlows] = WeakValueDictionary()


def _regated(persistence: Any, store: Any, policy: Policy, namespace: str, secret: Secret) -> Any:
    """A gated persistence, from what was pickled of it."""
    return gate(persistence, store=store, policy=policy, namespace=namespace, secret=secret)


def ticket(flow: Any) -> str:
    """A text of letters that need no quoting in a URL, which names the pause at which
    `flow` waits. Passed back as `remit_ticket`, it binds an answer to that pause.

    Args:
        flow: A flow from `from_pending`; or what `kickoff` and `resume` return when they
            pause (`HumanFeedbackPending`).

    Raises:
        UsageError: It does not wait.
    """
    context = getattr(flow, "context", None) or getattr(flow, "pending_feedback", None)
    paused = getattr(context, "flow_id", None)
    if not isinstance(paused, PausedId):
        raise UsageError(
            "ticket() takes a flow that waits for feedback in a gated persistence, and this one"
            " does not. Nothing was made."
        )
    return paused.binding.ticket(str(paused), pause_of(context))


def release(
    persistence: Any,
    flow_id: str,
    *,
    pause: str | None = None,
    actor: str | None = None,
    reason: str | None = None,
) -> bool:
    """Re-open the claim that a failed or abandoned delivery left closed on a flow.

    CrewAI deletes its own row of a pause before the first listener, and that does not come
    back: only an instance that was loaded before can still be resumed. A warning says so.

    Args:
        persistence: The gated persistence, or a flow that has it.
        flow_id: The flow's id.
        pause: Only this pause; None for every unfinished one.
        actor: Who releases; kept in the record.
        reason: Why; kept in the record.

    Returns:
        Whether there was anything to re-open.

    Raises:
        InProgress: A holder is alive; nothing was changed.
        UsageError: The persistence is not gated.
    """
    if not _gated(persistence):
        persistence = getattr(persistence, "persistence", None)
    if not _gated(persistence):
        raise UsageError("release() takes a gated persistence, or a flow that has one.")
    binding: Binding = persistence._self_binding
    done = _release(
        binding.store,
        flow_id,
        framework="crewai",
        namespace=binding.namespace,
        pause=pause,
        actor=actor,
        reason=reason,
    )
    if done and persistence.load_pending_feedback(flow_id) is None:
        logging.getLogger("remit_gates").warning(
            "%s: the claim is open again, but CrewAI's own row of the pause is gone. An"
            " instance that was loaded before can be resumed; from_pending() finds nothing."
            " kickoff(inputs={'id': flow_id}) runs the flow anew on its last saved state.",
            binding.key(flow_id),
        )
    return done
