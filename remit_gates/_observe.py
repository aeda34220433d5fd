"""What happened at the gate, for people and for programs. Telling never changes what
happened: a hook that raises is logged and passed over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from remit_gates._model import Claim, Reason, RunKey


Kind = Literal[
    "granted",
    "taken_over",
    "refused",
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
        kind: What happened. `unsettled` means that the end of a run could not be
            written down and is tried again; `served_ungated` that the store did not
            answer and the policy is to serve.
        run: The run.
        claim: The claim that it is about, if any.
        reason: Why a delivery was refused.
        detail: More, in words; never an answer.
    """

    kind: Kind
    run: RunKey
    claim: Claim | None = None
    reason: Reason | None = None
    detail: str = ""


Hook = Callable[[Event], None]

logger: Final = logging.getLogger("remit_gates")

_LEVELS: Final[dict[Kind, int]] = {
    "granted": logging.DEBUG,
    "settled": logging.DEBUG,
    "refused": logging.INFO,
    "failed": logging.INFO,
    "withdrawn": logging.INFO,
    "released": logging.WARNING,
    "taken_over": logging.WARNING,
    "renewal_failed": logging.WARNING,
    "served_ungated": logging.WARNING,
    "lost": logging.ERROR,
    "unsettled": logging.ERROR,
}

_hooks: dict[object, Hook] = {}
_lock = threading.Lock()


@contextmanager
def observed(hook: Hook) -> Iterator[None]:
    """Call `hook` with each event of this process, in the thread where it happens."""
    global _hooks  # noqa: PLW0603 -- replaced whole, so that `tell` needs no lock
    # A name of its own for this context: one hook may be observed twice, and a bound
    # method is another object each time that it is looked up.
    this = object()
    with _lock:
        _hooks = {**_hooks, this: hook}
    try:
        yield
    finally:
        with _lock:
            _hooks = {key: other for key, other in _hooks.items() if key is not this}


def tell(event: Event) -> None:
    """Log `event` and hand it to every hook."""
    level = _LEVELS[event.kind]
    if logger.isEnabledFor(level):
        token = None if event.claim is None else event.claim.token
        logger.log(
            level,
            "%s: %s%s%s%s",
            event.run,
            event.kind.replace("_", " "),
            "" if token is None else f", claim {token}",
            "" if event.reason is None else f", {event.reason.value}",
            f": {event.detail}" if event.detail else "",
            extra={
                "remit_event": event.kind,
                "remit_run": str(event.run),
                "remit_token": token,
                "remit_reason": None if event.reason is None else event.reason.value,
            },
        )
    for hook in _hooks.values():
        try:
            hook(event)
        except Exception:
            logger.exception("a hook failed on the event %r", event.kind)
