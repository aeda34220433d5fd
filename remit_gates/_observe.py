"""What happened at the gate, for people and for programs. Telling never changes what
happened: a hook that raises is logged and passed over. Where nobody listens, nothing is made.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from remit_gates._model import Claim, Holder, Intent, Outcome, Reason, RunKey
from remit_gates.errors import UsageError


Kind = Literal[
    "granted",
    "taken_over",
    "refused",
    "claim_failed",
    "settled",
    "failed",
    "withdrawn",
    "released",
    "renewal_failed",
    "lost",
    "unsettled",
    "served_ungated",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened at a gate.

    Attributes:
        kind: What happened. `claim_failed` means that nobody could tell whether to serve
            a delivery, or that it made no sense; `unsettled` that the end of a run could
            not be written down and is tried again; `served_ungated` that the store did not
            answer and the policy is to serve.
        run: The run.
        claim: The claim that it is about; of a refusal, the one in its way.
        reason: Why a delivery was refused.
        detail: More, in words; never an answer.
        error: Type of the error behind it, if there is one.
        outcome: What became of the run, at the end of a claim that was not withdrawn.
        seconds: How long it took. Of a delivery that was granted, refused or failed to
            claim: since before the record was first read, with all waiting. At the end of
            a claim: since it was sent.
        intent: What the delivery that it is about wants.
        pauses: The pauses that it answers, or took over unfinished.
        delivery: Its delivery id.
        actor: Who delivers, or who released. Of a delivery that was refused before
            anything was loaded, these four are not known.
    """

    kind: Kind
    run: RunKey
    claim: Claim | None = None
    reason: Reason | None = None
    detail: str = ""
    error: str | None = None
    outcome: Outcome | None = None
    seconds: float | None = None
    intent: Intent | None = None
    pauses: tuple[str, ...] = ()
    delivery: str | None = None
    actor: str | None = None


Hook = Callable[[Event], None]
"""Called with each event, in the thread and context where it happens. One that has a method
`claiming(run)` is also told, there, when a delivery comes, before the record is first read;
exactly one `granted`, `taken_over`, `refused`, `served_ungated` or `claim_failed` follows."""

logger: Final = logging.getLogger("remit_gates")

LEVELS: Final[dict[Kind, int]] = {
    "granted": logging.DEBUG,
    "settled": logging.DEBUG,
    "refused": logging.INFO,
    "failed": logging.INFO,
    "withdrawn": logging.INFO,
    "claim_failed": logging.WARNING,
    "released": logging.WARNING,
    "taken_over": logging.WARNING,
    "renewal_failed": logging.WARNING,
    "served_ungated": logging.WARNING,
    "lost": logging.ERROR,
    "unsettled": logging.ERROR,
}

_lock = threading.Lock()
_listeners: dict[object, tuple[Hook, ...]] = {}
# Both are made anew when somebody comes or goes, so that telling needs no lock.
_hooks: tuple[Hook, ...] = ()
_claiming: tuple[Callable[[RunKey], None], ...] = ()


def listen(name: object, *hooks: Hook) -> None:
    """Have `hooks` hear all that happens, in place of those that came by the same name.

    Raises:
        UsageError: One of them cannot be called.
    """
    global _hooks, _claiming  # noqa: PLW0603 -- see above
    for hook in hooks:
        if not callable(hook):
            raise UsageError(
                f"A hook is called with each event, and {type(hook).__name__} cannot be called."
                " The hooks are as they were."
            )
    with _lock:
        _listeners.pop(name, None)
        if hooks:
            _listeners[name] = hooks
        _hooks = tuple(hook for group in _listeners.values() for hook in group)
        told = (getattr(hook, "claiming", None) for hook in _hooks)
        _claiming = tuple(claiming for claiming in told if claiming is not None)


def set_hooks(*hooks: Hook) -> None:
    """From now on, call each of `hooks` with each event of this process, in the thread where
    it happens. They replace those of the last call; none are called after `set_hooks()`.

    Whoever listens by `observed`, or by `remit_gates.otel.instrument`, goes on to.

    Args:
        hooks: Functions of an `Event`. What one raises is logged, and changes nothing. One
            that has a method `claiming(run)` is also told when a delivery comes, in the
            thread and context where its verdict is told afterwards.

    Raises:
        UsageError: One of them cannot be called.
    """
    listen(set_hooks, *hooks)


@contextmanager
def observed(hook: Hook) -> Iterator[None]:
    """As `set_hooks`, for the length of a block, and beside all other hooks."""
    # A name of its own for this context: one hook may be observed twice, and a bound
    # method is another object each time that it is looked up.
    name = object()
    listen(name, hook)
    try:
        yield
    finally:
        listen(name)


def heard(kind: Kind) -> bool:
    """Whether anybody would hear of such an event."""
    return bool(_hooks) or logger.isEnabledFor(LEVELS[kind])


def claiming(run: RunKey) -> None:
    """Tell the hooks that want to know that a delivery has come."""
    for told in _claiming:
        try:
            told(run)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 -- whatever a hook raises
            _log(logging.ERROR, "a hook failed as a delivery came", exc_info=True)


def tell(event: Event) -> None:
    """Log `event` and hand it to every hook."""
    level = LEVELS[event.kind]
    if logger.isEnabledFor(level):
        _log(
            level,
            "%s: %s%s%s%s",
            event.run,
            event.kind.replace("_", " "),
            "" if event.claim is None else f", claim {event.claim.token}",
            "" if event.reason is None else f", {event.reason.value}",
            f": {event.detail}" if event.detail else "",
            extra=_fields(event),
        )
    for hook in _hooks:
        try:
            hook(event)
        except KeyboardInterrupt:
            # It came from outside, while the hook ran.
            raise
        except BaseException:  # noqa: BLE001 -- whatever a hook raises
            _log(logging.ERROR, "a hook failed on the event %r", event.kind, exc_info=True)


def _log(level: int, message: str, *args: object, **more: Any) -> None:
    try:
        logger.log(level, message, *args, **more)
    except Exception:  # noqa: BLE001 -- of a filter or a handler of the application's
        if logging.raiseExceptions:
            # As logging itself does with a handler that fails.
            traceback.print_exc()


def _process(holder: Holder) -> str:
    # Behind the name of the host stands a digest that tells boots apart, and a reader nothing.
    return f"{holder.host.partition('#')[0]}:{holder.pid}"


def _fields(event: Event) -> dict[str, Any]:
    """The fields of a log record. Programs read them: none is ever renamed, and each is in
    every record. What they mean is in docs/telemetry.md."""
    claim = event.claim
    return {
        "remit_event": event.kind,
        "remit_run": str(event.run),
        "remit_framework": event.run.framework,
        "remit_namespace": event.run.namespace,
        "remit_name": event.run.run,
        "remit_reason": None if event.reason is None else event.reason.value,
        "remit_intent": None if event.intent is None else event.intent.value,
        "remit_pauses": list(event.pauses),
        "remit_delivery": event.delivery,
        "remit_actor": event.actor,
        "remit_token": None if claim is None else claim.token,
        "remit_attempt": None if claim is None else claim.attempt,
        "remit_holder": None if claim is None else _process(claim.holder),
        "remit_outcome": None if event.outcome is None else event.outcome.state,
        "remit_error": event.error,
        "remit_seconds": event.seconds,
        "remit_detail": event.detail,
    }
