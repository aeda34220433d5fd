"""A run as the operators' commands show it: all that its record holds, in one form that both
the tables and the JSON are made of."""

from __future__ import annotations

import argparse
from typing import Any

from remit_gates._cli.values import moment
from remit_gates._history import Attempt, attempts
from remit_gates._liveness import known_dead, liveness
from remit_gates._model import Claim, Consumption, Holder, Outcome, RunKey, Snapshot
from remit_gates._phases import RunPhase, phase


def key_of(arguments: argparse.Namespace) -> RunKey:
    """The run that the command names."""
    return RunKey(arguments.framework, arguments.namespace, arguments.run_id)


def phase_of(snapshot: Snapshot) -> RunPhase:
    """The phase of a run as it is seen from this host."""
    claim = snapshot.record.claim
    return phase(snapshot, dead=claim is not None and known_dead(claim.holder))


def about(run: RunKey, snapshot: Snapshot) -> dict[str, Any]:
    """What the record of `run` holds, but for its earlier consumptions. Times are RFC 3339
    by the store's clock, and lengths of time are seconds."""
    record = snapshot.record
    last = record.consumptions[-1] if record.consumptions else None
    return {
        "framework": run.framework,
        "namespace": run.namespace,
        "run": run.run,
        "phase": phase_of(snapshot).value,
        "token": record.token,
        "claim": record.claim and _claim(record.claim, snapshot),
        "unfinished": [entry.pause for entry in record.unfinished],
        "last": last and consumption(last),
    }


def _claim(claim: Claim, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "token": claim.token,
        "attempt": claim.attempt,
        "intent": claim.intent.value,
        "pauses": list(claim.pauses),
        "holder": holder(claim.holder),
        "since": moment(claim.since),
        "seconds": round(snapshot.now - claim.since, 3),
        "lease": claim.lease,
        "lease_left": snapshot.lease_left and round(snapshot.lease_left, 3),
        "delivery": claim.delivery,
        "actor": claim.actor,
        "idempotency_key": claim.key,
    }


def consumption(entry: Consumption) -> dict[str, Any]:
    """One answered pause."""
    return {
        "pause": entry.pause,
        "generation": entry.generation,
        "token": entry.token,
        "attempt": entry.attempt,
        "phase": entry.phase.value,
        "digest": entry.digest,
        "delivery": entry.delivery,
        "actor": entry.actor,
        "holder": holder(entry.holder),
        "since": moment(entry.since),
        "until": moment(entry.until),
        "outcome": entry.outcome and _outcome(entry.outcome),
        "reopened": entry.reopened,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "state": outcome.state,
        "position": outcome.position,
        "waiting": list(outcome.waiting),
        "detail": outcome.detail,
        "actor": outcome.actor,
        "error": outcome.error,
    }


def history(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Each attempt that the record remembers, as it is seen from this host."""
    claim = snapshot.record.claim
    dead = claim is not None and known_dead(claim.holder)
    return [_attempt(entry) for entry in attempts(snapshot, dead=dead)]


def _attempt(entry: Attempt) -> dict[str, Any]:
    on, release = entry.continued, entry.release
    return {
        "pause": entry.pause,
        "attempt": entry.attempt,
        "token": entry.token,
        "state": entry.state,
        "actor": entry.actor,
        "delivery": entry.delivery,
        "digest": entry.digest,
        "answer": entry.answer,
        "answered": moment(entry.answered),
        "continued": on and {"since": moment(on.since), "delivery": on.delivery, "actor": on.actor},
        "holder": holder(entry.holder),
        "since": moment(entry.since),
        "until": moment(entry.until),
        "position": entry.position,
        "error": entry.error,
        "release": release
        and {"at": moment(release.at), "actor": release.actor, "reason": release.reason},
    }


def holder(of: Holder) -> dict[str, Any]:
    """One attempt in one process, and whether that lives, as far as this host can tell."""
    # Behind the name stands a digest that tells boots apart, and a person nothing.
    return {"host": of.host.partition("#")[0], "pid": of.pid, "state": liveness(of)}


def process(of: dict[str, Any]) -> str:
    """A `holder` in words."""
    state = {"alive": "alive", "dead": "known dead", "unknown": "not known from here"}
    return f"process {of['pid']} on {of['host']} ({state[of['state']]})"
