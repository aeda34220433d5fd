"""`remit-gates ls`: a page of runs. What is not on the page is not loaded."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from remit_gates._cli.common import document, looking, note
from remit_gates._cli.runs import about, phase_of
from remit_gates._cli.tables import table
from remit_gates._cli.values import command, moment, shown, span, written
from remit_gates._model import RunKey
from remit_gates._phases import RunPhase
from remit_gates.stores import Entry, Store


HEADS = (
    "FRAMEWORK",
    "NAMESPACE",
    "RUN",
    "PHASE",
    "CHANGED",
    "ATTEMPT",
    "HELD BY",
    "ANSWERED BY",
    "OUTCOME",
)


def ls(arguments: argparse.Namespace) -> int:
    """Print the runs that match, in the order of their keys."""
    entries: list[Entry] = []
    following = False
    with looking(arguments.url, long=True) as store:
        for entry in _matching(store, arguments):
            if len(entries) == arguments.limit:
                following = True
                break
            entries.append(entry)
    last = entries[-1].run if following else None
    if arguments.json:
        document({"runs": [_listed(entry) for entry in entries], "next": last and _parts(last)})
        return 0
    if entries:
        table(HEADS, [_row(_listed(entry)) for entry in entries])
    else:
        note("No run matches.")
    if last is not None:
        note(f"There are more: {_next(arguments, last)}")
    return 0


def _matching(store: Store, arguments: argparse.Namespace) -> Iterator[Entry]:
    wanted = {RunPhase(name) for name in arguments.phase or RunPhase}
    claimed = {one.claimed for one in wanted}
    entries = store.scan(
        arguments.framework,
        arguments.namespace,
        after=arguments.after,
        # The store leaves out what it can tell; the rest is in the record.
        claimed=claimed.pop() if len(claimed) == 1 else None,
        idle=arguments.older_than and arguments.older_than.seconds,
    )
    return (entry for entry in entries if phase_of(entry.snapshot) in wanted)


def _listed(entry: Entry) -> dict[str, Any]:
    return {
        **about(entry.run, entry.snapshot),
        "changed": moment(entry.updated),
        "idle": round(entry.snapshot.now - entry.updated, 3),
    }


def _row(run: dict[str, Any]) -> list[str]:
    claim, last = run["claim"], run["last"]
    held = claim and claim["holder"]
    current = claim or last or {}
    outcome = last and last["outcome"]
    return [
        run["framework"],
        run["namespace"],
        run["run"],
        run["phase"],
        f"{span(run['idle'])} ago",
        str(current.get("attempt", "")),
        f"{held['pid']}@{held['host']}{' (dead)' * (held['state'] == 'dead')}" if held else "",
        current.get("actor") or "",
        outcome["state"] if outcome and not claim else "",
    ]


def _parts(run: RunKey) -> list[str]:
    return [run.framework, run.namespace, run.run]


def _next(arguments: argparse.Namespace, last: RunKey) -> str:
    """The command that prints the next page."""
    words = ["remit-gates", "ls", shown(arguments.url)]
    for option, value in (
        ("--framework", arguments.framework),
        ("--namespace", arguments.namespace),
        ("--older-than", arguments.older_than and arguments.older_than.text),
        *(("--phase", name) for name in arguments.phase or ()),
    ):
        if value is not None:
            words += [option, value]
    return command([*words, "--limit", str(arguments.limit), "--after", written(last)])
