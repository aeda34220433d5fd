"""What an error looks like from outside: one problem, by RFC 9457, for each kind of error.

A problem holds nothing but what the one who delivers may know: never an answer, a stack, a
process or a host. What an operator needs stands in the log.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from remit_gates._model import Reason
from remit_gates.errors import (
    AlreadyConsumed,
    InProgress,
    RemitError,
    ResumeRefused,
    UsageError,
)
from remit_gates.http._words import OTHERS, OUTCOMES, REFUSED, UNUSED


NAMESPACE: Final = "urn:remit-gates:problem:"
"""What the `type` of every problem starts with."""

RETRY_AFTER: Final = 5
"""Seconds after which to deliver again, where the store did not answer."""


class InvalidRequest(UsageError):
    """Raised when a request lacks what a gate needs of it, or has it in a form that means
    nothing. Nothing was read or changed.

    Attributes:
        http_status: The status to answer with.
        name: The last part of the problem's `type`.
    """

    def __init__(self, message: str, *, name: str, http_status: int = 400) -> None:
        super().__init__(message)
        self.name = name
        self.http_status = http_status


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem as RFC 9457 has it.

    Attributes:
        type: A URN that names the kind of problem; stable.
        title: The kind, in a few words; the same for all of a kind.
        status: The HTTP status.
        detail: What happened, in a sentence or two that a person may be shown.
        retry_after: Whole seconds after which asking again may be answered differently;
            None where waiting changes nothing.
        members: What else the body holds.
    """

    type: str
    title: str
    status: int
    detail: str
    retry_after: int | None = None
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """The members of the JSON body."""
        body = {
            "type": self.type,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }
        return body if self.retry_after is None else {**body, "retry_after": self.retry_after}

    @property
    def headers(self) -> dict[str, str]:
        """The headers that go with the body, but for its type."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def problem(error: RemitError, delivery: str | None = None) -> Problem:
    """What to tell the one whose delivery raised `error`.

    Args:
        error: Any error of this package.
        delivery: The delivery id of the request, if it had one: one that comes with
            another answer than it came with before is a problem of its own (422).
    """
    if isinstance(error, ResumeRefused):
        return _reused(error) if _came_before(error, delivery, False) else _refused(error)
    if isinstance(error, InvalidRequest):
        title = "The request lacks what is needed"
        return Problem(NAMESPACE + error.name, title, error.http_status, str(error))
    for kind, name, status, title, detail in OTHERS:
        if isinstance(error, kind):
            again = RETRY_AFTER if status == 503 else None
            return Problem(NAMESPACE + name, title, status, detail, again)
    raise AssertionError("the last kind is the base of all")


def replayed(error: RemitError, delivery: str | None) -> dict[str, Any] | None:
    """What became of the first of two equal requests, when `error` refused the second:
    the same delivery id with the same answer. None when it is no such error."""
    if not isinstance(error, AlreadyConsumed) or not _came_before(error, delivery, True):
        return None
    return {"same_answer": True, **_known(error)}


def _came_before(error: ResumeRefused, delivery: str | None, same: bool) -> bool:
    """Whether the delivery id `delivery` came before, with the same answer or another."""
    return (
        isinstance(error, AlreadyConsumed)
        and not (same and error.failed)
        and delivery is not None
        and error.consumption is not None
        and error.consumption.delivery == delivery
        and error.same_answer is same
    )


def _reused(error: ResumeRefused) -> Problem:
    return Problem(
        NAMESPACE + "idempotency-key-reused",
        "The key came before with another answer",
        422,
        (
            f"This Idempotency-Key came before, with another answer. {UNUSED}"
            " Send another answer under a key of its own."
        ),
        members=_known(error),
    )


def _refused(error: ResumeRefused) -> Problem:
    title, detail = REFUSED[error.reason]
    known = _known(error)
    entry, claim = error.consumption, error.claim
    actor, since = None, None
    if entry is not None:
        actor, since = entry.actor, entry.since
    elif claim is not None:
        actor, since = claim.actor, claim.since
    by = f" by {actor}" if actor else ""
    if since is not None:
        by += f"{' since' if error.reason is Reason.IN_PROGRESS else ' at'} {_spoken(since)}"
    outcome = None if entry is None or entry.outcome is None else entry.outcome.state
    # Never zero: whoever asked a moment ago would be told the same.
    again = None if error.retry_after is None else max(1, math.ceil(error.retry_after))
    return Problem(
        NAMESPACE + error.reason.value.replace("_", "-"),
        title,
        error.http_status,
        detail.format(by=by, so=OUTCOMES.get(outcome or "", "")),
        again,
        {"reason": error.reason.value, **known},
    )


def _known(error: ResumeRefused) -> dict[str, Any]:
    """What the record knows of the answer in the way, as far as it concerns the sender."""
    known: dict[str, Any] = {}
    entry = error.consumption
    if isinstance(error, (AlreadyConsumed, InProgress)) and error.same_answer is not None:
        known["same_answer"] = error.same_answer
    if entry is None:
        return known
    known["answered_at"] = _written(entry.since)
    if entry.actor is not None:
        known["answered_by"] = entry.actor
    if entry.outcome is not None:
        known["outcome"] = {"state": entry.outcome.state}
        if entry.outcome.position is not None:
            known["outcome"]["position"] = entry.outcome.position
        if entry.until is not None:
            known["outcome"]["ended_at"] = _written(entry.until)
    return known


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def _written(seconds: float) -> str:
    return _moment(seconds).isoformat(timespec="seconds").replace("+00:00", "Z")


def _spoken(seconds: float) -> str:
    return _moment(seconds).strftime("%Y-%m-%d %H:%M:%S UTC")
