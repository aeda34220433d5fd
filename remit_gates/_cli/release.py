"""`remit-gates release`: what was shown is what is released, or nothing is."""

from __future__ import annotations

import argparse

from remit_gates._cli.common import actor, confirm, document, looking
from remit_gates._cli.runs import key_of, phase_of
from remit_gates._cli.values import clean, moment
from remit_gates._decide import Refused
from remit_gates._decide import release as decide_release
from remit_gates._drive import drive
from remit_gates._gate import VERBS
from remit_gates._keeper import Keeper
from remit_gates._liveness import known_dead
from remit_gates._model import Record, RunKey, Snapshot
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates._refusal import refusal
from remit_gates.errors import RemitError
from remit_gates.stores import Store


def release(arguments: argparse.Namespace) -> int:
    """Let the pauses of a run that failed or was abandoned be answered again.

    Raises:
        InProgress: A holder is alive.
        RemitError: There is nothing to release, it was not confirmed, or the run changed
            while the question stood.
    """
    run = key_of(arguments)
    by = arguments.actor or actor()
    with looking(arguments.url) as store:
        seen = store.read(run)
        pauses = _reopened(run, seen, arguments.pause)
        if pauses is None:
            raise RemitError(
                f"{run} has nothing to release: look at the run, framework and namespace with"
                " `remit-gates show`"
            )
        what = f"{run} is {phase_of(seen).value}{_worked(seen.record, pauses)}."
        if not arguments.dry_run:
            ask = "Release it, so that it may be answered again?"
            confirm(clean(what), ask, "Nothing was released.", yes=arguments.yes)
            _release(store, run, seen.record, arguments, by)
    if arguments.json:
        document(
            {
                "framework": run.framework,
                "namespace": run.namespace,
                "run": run.run,
                "pauses": list(pauses),
                "released": not arguments.dry_run,
                "actor": by,
                "reason": arguments.reason,
            }
        )
    elif arguments.dry_run:
        print(f"{clean(what)} It would be released. Nothing was changed.")
    else:
        print(f"{clean(str(run))} may be answered again.")
    return 0


def _reopened(run: RunKey, seen: Snapshot, pause: str | None) -> tuple[str, ...] | None:
    """The pauses that a release would re-open; None if it would change nothing."""
    record, left = seen.record, seen.lease_left
    if record.claim is not None and known_dead(record.claim.holder):
        left = 0.0
    after = decide_release(record, left, seen.now, pause=pause)
    if isinstance(after, Refused):
        raise refusal(Denied(run, after), VERBS)
    if after == record:
        return None
    return tuple(
        entry.pause
        for before, entry in zip(record.consumptions, after.consumptions, strict=True)
        if entry != before
    )


def _worked(record: Record, pauses: tuple[str, ...]) -> str:
    """What the last attempt at `pauses` was, in words."""
    words = []
    for pause in pauses:
        entry = record.consumption(pause)
        if entry is not None:
            by = f" by {entry.actor}" if entry.actor else ""
            detail = entry.outcome and entry.outcome.detail
            why = f" and failed with {detail}" if detail else ""
            words.append(f"pause {pause} was answered{by} at {moment(entry.since)}{why}")
    return f": {'; '.join(words)}" if words else ""


def _release(
    store: Store, run: RunKey, seen: Record, arguments: argparse.Namespace, by: str
) -> None:
    keeper = Keeper(store, Policy())
    flow = keeper.release(run, arguments.pause, by, arguments.reason, seen)
    released = drive(flow, StorePort(store))
    if isinstance(released, Denied):
        raise refusal(released, VERBS)
    if not released:
        raise RemitError(f"{run} has nothing to release any more. Nothing was changed.")
