"""From a refused verdict to the exception that a caller gets, and what it says.

A message says what happened, to which run and pause, what was not done and what to do
next. It never holds an answer.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from remit_gates._model import Claim, Consumption, Outcome, Reason
from remit_gates._passage import Denied
from remit_gates.errors import (
    Abandoned,
    AlreadyConsumed,
    InProgress,
    NotParked,
    ResumeRefused,
    StaleTicket,
    Superseded,
)


@dataclass(frozen=True, slots=True)
class Verbs:
    """How a framework's user does what a message tells them to do.

    Attributes:
        go_on: The framework's own continue.
        ask: How to see what waits now.
        fork: How to branch off on purpose.
        failed: What to do after a failure, where there is no continue.
        abandoned: What to do after a death, likewise.
    """

    go_on: str = "deliver with the intent CONTINUE"
    ask: str = "look at the run's state"
    fork: str = "deliver with the intent FORK"
    failed: str = ""
    abandoned: str = ""


_KINDS: Final[dict[Reason, type[ResumeRefused]]] = {
    Reason.IN_PROGRESS: InProgress,
    Reason.CONSUMED: AlreadyConsumed,
    Reason.FAILED: AlreadyConsumed,
    Reason.ABANDONED: Abandoned,
    Reason.STALE_TICKET: StaleTicket,
    Reason.NOT_PARKED: NotParked,
    Reason.SUPERSEDED: Superseded,
}

NOTHING_RAN: Final = "This delivery was not recorded and no node ran for it."


def refusal(
    denied: Denied, verbs: Verbs, kinds: Mapping[Reason, type[ResumeRefused]] | None = None
) -> ResumeRefused:
    """The exception that says why `denied` was denied; of the type that `kinds` has for its
    reason, if it has one."""
    verdict, delivery = denied.verdict, denied.delivery
    entry = verdict.consumption
    if entry is not None and entry.answer is not None:
        # Errors travel to whoever delivered, who need not be who may read the answers.
        entry = replace(entry, answer=None)
    pauses = () if delivery is None else tuple(answer.pause for answer in delivery.answers)
    kind = (kinds or {}).get(verdict.reason, _KINDS[verdict.reason])
    return kind(
        f"{denied.run} {_why(denied, verbs)}",
        reason=verdict.reason,
        run=denied.run,
        pauses=pauses,
        claim=verdict.claim,
        consumption=entry,
        retry_after=verdict.retry_after,
        same_answer=verdict.same,
    )


def _why(denied: Denied, verbs: Verbs) -> str:
    verdict = denied.verdict
    reason, claim, entry = verdict.reason, verdict.claim, verdict.consumption
    named = ", ".join(
        answer.pause for answer in (denied.delivery.answers if denied.delivery else ())
    )
    at = f" (pause {named})" if named else ""
    if reason is Reason.IN_PROGRESS:
        waited = "still " if denied.waited else ""
        return (
            f"is {waited}being served by {_held(claim)}{_same(verdict.same)}. {NOTHING_RAN}"
            f" Ask again when it has ended, in {verdict.retry_after or 0:.1f} s at the latest if"
            " its holder is gone."
        )
    if reason is Reason.CONSUMED:
        return (
            f"was not waiting for this delivery any more: {_answered(entry, verdict.same)}."
            f" {NOTHING_RAN}"
            f" To see what waits now, {verbs.ask}."
        )
    if reason is Reason.FAILED:
        again = verbs.failed or (
            f"Mend the cause, then {verbs.go_on}, which reuses that answer, or redeliver it with"
            " the same delivery id; release() re-opens the pause for another answer."
        )
        return (
            f"failed after it took an answer: {_answered(entry, verdict.same)}. {NOTHING_RAN}"
            f" The answer stays consumed. {again}"
        )
    if reason is Reason.ABANDONED:
        by = f"by {_held(claim)}" if claim else "by its holder"
        if entry is not None and claim is None:
            by += f": {_taken(entry)}"
        again = verbs.abandoned or (
            f"Look at what it did, then {verbs.go_on}, or release() to have the pause answered"
            " again; Policy(on_abandoned='serve') does without you."
        )
        return f"was abandoned {by}. How far it got is not known. {NOTHING_RAN} {again}"
    if reason is Reason.STALE_TICKET:
        return (
            f"does not wait at the pause that this ticket names any more{at}."
            f" {NOTHING_RAN} To see what waits now, {verbs.ask}."
        )
    if reason is Reason.NOT_PARKED:
        return (
            f"does not wait for this answer{at}, and nothing is known of its ever having done so."
            f" {NOTHING_RAN} To see what waits now, {verbs.ask}."
        )
    return (
        f"has gone on to something else since what this delivery is for{at}."
        f" {NOTHING_RAN} To see what waits now, {verbs.ask}; to branch off on purpose,"
        f" {verbs.fork}."
    )


def _held(claim: Claim | None) -> str:
    if claim is None:
        return "one delivery after another"
    by = f" for {claim.actor}" if claim.actor else ""
    at = f", answering {', '.join(claim.pauses)}" if claim.pauses else ""
    return (
        f"claim {claim.token}, held by process {claim.holder.pid} on {claim.holder.host}{by}"
        f" since {_time(claim.since)}{at}"
    )


def _answered(entry: Consumption | None, same: bool | None = None) -> str:
    if entry is None:
        return "its delivery id was used up before"
    return f"{_taken(entry)}{_same(same)}, and {_ended(entry)}"


def _taken(entry: Consumption) -> str:
    by = f" by {entry.actor}" if entry.actor else ""
    return f"pause {entry.pause} was answered{by} at {_time(entry.since)}"


def _same(same: bool | None) -> str:
    if same is None:
        return ""
    return ", with the same answer as this" if same else ", with another answer than this"


def _ended(entry: Consumption) -> str:
    outcome = entry.outcome
    if outcome is None:
        return "its run is not known to have ended"
    at = f" at {_time(entry.until)}" if entry.until is not None else ""
    detail = f" ({outcome.detail})" if outcome.detail else ""
    if outcome.state == "released":
        by = f" by {outcome.actor}" if outcome.actor else ""
        return f"was released{by}{at}{detail}"
    again = " again" if outcome.state == "parked" else ""
    stands = f", where it stands at {outcome.position}" if outcome.position else ""
    return f"its run {outcome.state}{again}{detail}{at}{stands}"


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def same_as_first(denied: Denied) -> bool:
    """Whether a delivery that waited is to be treated as if it had been first: its bound
    answer equals the one served, and the run has finished and stands there still."""
    outcome = _as_first(denied)
    return (
        outcome is not None
        and outcome.state == "finished"
        and denied.delivery is not None
        and outcome.position == denied.delivery.position
    )


def parked_again(denied: Denied) -> bool:
    """Whether it would be treated so, had the run not parked again."""
    outcome = _as_first(denied)
    return outcome is not None and outcome.state == "parked"


def _as_first(denied: Denied) -> Outcome | None:
    """What became of the answer that was served, for a delivery that waited and whose
    bound answer is the same."""
    verdict, delivery = denied.verdict, denied.delivery
    like = denied.waited and verdict.reason is Reason.CONSUMED and verdict.same is True
    if not like or delivery is None or not delivery.bound or verdict.consumption is None:
        return None
    return verdict.consumption.outcome
