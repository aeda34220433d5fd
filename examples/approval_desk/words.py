"""What a person is told after pressing a button: one or two sentences of plain English."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from examples.approval_desk.desk import APPROVE, REJECT, Decision
from remit_gates import AlreadyConsumed, InProgress, RemitError, StaleTicket, StoreError
from remit_gates.http import InvalidRequest


@dataclass(frozen=True, slots=True)
class Told:
    """What to say, and whether it is good news."""

    text: str
    good: bool = False


_DID: Final = {APPROVE: "approved", REJECT: "rejected"}
_OTHER: Final = {APPROVE: REJECT, REJECT: APPROVE}
_CHANGED: Final = "Your click changed nothing"


def happened(decisions: Sequence[Decision], answer: str, by: str) -> Told:
    """What an answer led to. It may be the second of two that came at the same time: then
    the words are those that the first one got."""
    last = decisions[-1]
    who = "You" if last["by"] == by else last["by"].capitalize()
    done = "It was done, once." if answer == APPROVE else "Nothing was done."
    return Told(f"{who} {_DID[answer]} “{last['step']}”. {done}", good=True)


def trouble(error: RemitError, answer: str, by: str) -> Told:
    """Why an answer was not used."""
    if isinstance(error, AlreadyConsumed) and error.failed:
        return Told("This was answered, and then something went wrong. Somebody has to look at it.")
    if isinstance(error, AlreadyConsumed) and error.consumption is not None:
        actor = error.consumption.actor
        who = "You" if actor == by else (actor or "Somebody").capitalize()
        served = answer if error.same_answer else _OTHER[answer]
        done = " It was done once." if served == APPROVE else ""
        when = _time(error.consumption.since)
        # The second click of a double click is no bad news to whoever made both.
        mine = actor == by and error.same_answer is True
        return Told(f"{who} {_DID[served]} this already, at {when}.{done} {_CHANGED}.", mine)
    if isinstance(error, InProgress):
        return Told(f"This is being worked on right now. {_CHANGED}; look again in a moment.")
    if isinstance(error, StaleTicket):
        return Told(f"This is not asked any more. {_CHANGED}; see below what waits now.")
    if isinstance(error, InvalidRequest):
        return Told("That button is not one of this desk's. Nothing was done.")
    if isinstance(error, StoreError):
        return Told("The desk cannot reach its records just now. Nothing was done; try again.")
    return Told(f"This could not be used. {_CHANGED}; see below what waits now.")


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%H:%M:%S UTC")
