"""From what the keeper sees to the events that are told of it. Each claim has one beginning
and one end, and each delivery one verdict, however often its store failed in between.
"""

from __future__ import annotations

import time
from typing import Any

from remit_gates._model import Claim, Delivery, Outcome, RunKey
from remit_gates._observe import Event, Kind, heard, tell
from remit_gates._passage import Denied, Passage
from remit_gates.errors import RemitError


def granted(passage: Passage, began: float) -> None:
    """The claim of `passage` was granted to a delivery that came at `began`."""
    kind: Kind = "taken_over" if passage.replaced else "granted"
    if heard(kind):
        claim = passage.claim
        tell(Event(kind, passage.run, claim, seconds=_since(began), **_behind(claim)))


def ungated(passage: Passage, began: float, error: BaseException) -> None:
    """The delivery is served without a claim, since the store failed with `error`."""
    of = _asked(passage.delivery)
    tell(Event("served_ungated", passage.run, seconds=_since(began), **_cause(error), **of))


def refused(denied: Denied, began: float) -> None:
    """A delivery that came at `began` was denied."""
    if heard("refused"):
        verdict, delivery = denied.verdict, denied.delivery
        of = {} if delivery is None else _asked(delivery)
        tell(
            Event(
                "refused",
                denied.run,
                verdict.claim,
                verdict.reason,
                seconds=_since(began),
                **of,
            )
        )


def undecided(run: RunKey, began: float, error: BaseException) -> None:
    """A delivery that came at `began` got `error` instead of a verdict."""
    tell(Event("claim_failed", run, seconds=_since(began), **_cause(error)))


def troubled(kind: Kind, passage: Passage, error: BaseException) -> None:
    """The claim of `passage` is held still, and something failed with `error`."""
    claim = passage.claim
    held = _since(passage.entered)
    tell(Event(kind, passage.run, claim, seconds=held, **_cause(error), **_behind(claim)))


def ended(passage: Passage, outcome: Outcome | None, *, kept: bool) -> None:
    """The claim of `passage` has ended: with `outcome`, withdrawn, or not `kept`."""
    kind: Kind = "withdrawn" if outcome is None else "settled"
    if not kept:
        kind, outcome = "lost", None
    elif outcome is not None and outcome.state == "failed":
        kind = "failed"
    if heard(kind):
        detail = None if outcome is None else outcome.detail
        tell(
            Event(
                kind,
                passage.run,
                passage.claim,
                detail=detail or "",
                error=detail if kind == "failed" else None,
                outcome=outcome,
                seconds=_since(passage.entered),
                **_behind(passage.claim),
            )
        )


def _since(moment: float) -> float:
    return time.monotonic() - moment


def _cause(error: BaseException) -> dict[str, Any]:
    # Our own errors say no secrets, others might.
    name = type(error).__name__
    return {"detail": str(error) if isinstance(error, RemitError) else name, "error": name}


def _behind(claim: Claim) -> dict[str, Any]:
    """What a claim says of the delivery behind it."""
    return {
        "intent": claim.intent,
        "pauses": claim.pauses,
        "delivery": claim.delivery,
        "actor": claim.actor,
    }


def _asked(delivery: Delivery) -> dict[str, Any]:
    return {
        "intent": delivery.intent,
        "pauses": tuple(answer.pause for answer in delivery.answers),
        "delivery": delivery.id,
        "actor": delivery.actor,
    }
