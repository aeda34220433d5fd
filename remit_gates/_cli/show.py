"""`remit-gates show`: what the record of one run holds, and what may be done about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from remit_gates._cli.common import document, looking
from remit_gates._cli.runs import about, consumption, history, key_of, process
from remit_gates._cli.tables import table
from remit_gates._cli.values import clean, command, shown, span
from remit_gates.errors import RemitError


HEADS = ("PAUSE", "PHASE", "ATTEMPT", "ANSWERED", "BY", "DELIVERY", "ENDED", "OUTCOME")

EARLIER = ("PAUSE", "ATTEMPT", "STATE", "SINCE", "ANSWERED BY", "WENT ON", "ENDED", "OUTCOME")

GO_ON = "go on with the answer that is recorded (in LangGraph: graph.invoke(None, config))"


def show(arguments: argparse.Namespace) -> int:
    """Print the record of a run.

    Raises:
        RemitError: There is none.
    """
    run = key_of(arguments)
    with looking(arguments.url) as store:
        snapshot = store.read(run)
    if snapshot.version is None:
        raise RemitError(
            f"{run} has no record in this store. Look at the name of the run, and at --framework"
            " and --namespace; `remit-gates ls URL` lists what there is."
        )
    body = {
        **about(run, snapshot),
        "consumptions": [consumption(entry) for entry in snapshot.record.consumptions],
        "history": history(snapshot),
    }
    if arguments.json:
        document(body)
        return 0
    print(f"{clean(str(run))} is {body['phase']}")
    for line in _claimed(body["claim"]):
        print(f"  {clean(line)}")
    if body["consumptions"]:
        print()
        table(HEADS, [_row(entry) for entry in body["consumptions"]])
    now = {(entry["pause"], entry["token"]) for entry in body["consumptions"]}
    earlier = [entry for entry in body["history"] if (entry["pause"], entry["token"]) not in now]
    if earlier:
        print("\nEarlier attempts")
        table(EARLIER, [_earlier(entry) for entry in earlier])
    for line in _advice(body, arguments):
        print(f"\n{line}")
    return 0


def _claimed(claim: dict[str, Any] | None) -> Iterator[str]:
    if claim is None:
        return
    yield f"claim       {claim['token']}, attempt {claim['attempt']}, to {claim['intent']}"
    if claim["pauses"]:
        yield f"pauses      {', '.join(claim['pauses'])}"
    yield f"held by     {process(claim['holder'])}"
    yield f"since       {claim['since']}, {span(claim['seconds'])} ago"
    left = claim["lease_left"] or 0.0
    state = f"{left:.0f}s left" if left > 0 else f"over for {span(-left)}"
    yield f"lease       {claim['lease']:g}s, {state}"
    for name, value in (("delivery", claim["delivery"]), ("actor", claim["actor"])):
        if value is not None:
            yield f"{name:<12}{value}"
    yield f"key         {claim['idempotency_key']}"


def _row(entry: dict[str, Any]) -> list[str]:
    return [
        entry["pause"],
        entry["phase"] + (", re-opened" if entry["reopened"] else ""),
        str(entry["attempt"]),
        entry["since"],
        entry["actor"] or "",
        entry["delivery"] or "",
        entry["until"] or "",
        _outcome(entry["outcome"]),
    ]


def _earlier(entry: dict[str, Any]) -> list[str]:
    on, release = entry["continued"], entry["release"]
    outcome = f"{entry['state']}: {entry['error']}" if entry["error"] else entry["state"]
    if release is not None:
        by = f" by {release['actor']}" if release["actor"] else ""
        outcome += f", released{by}" + (f": {release['reason']}" if release["reason"] else "")
    return [
        entry["pause"],
        str(entry["attempt"]),
        entry["state"],
        entry["since"],
        entry["actor"] or "",
        (on["actor"] or "yes") if on else "",
        entry["until"] or "",
        outcome,
    ]


def _outcome(outcome: dict[str, Any] | None) -> str:
    if outcome is None:
        return ""
    by = f" by {outcome['actor']}" if outcome["actor"] else ""
    detail = f": {outcome['detail']}" if outcome["detail"] else ""
    before = f"failed: {outcome['error']}, " if outcome["error"] else ""
    return f"{before}{outcome['state']}{by}{detail}"


def _advice(run: dict[str, Any], arguments: argparse.Namespace) -> Iterator[str]:
    """What to do about a run that does not go on by itself."""
    release = ["remit-gates", "release", shown(arguments.url), run["run"]]
    for option, value, default in (
        ("--framework", run["framework"], "langgraph"),
        ("--namespace", run["namespace"], ""),
    ):
        if value != default:
            release += [option, value]
    again = f"or have its pauses answered again: {command(release)} --reason WHY"
    if run["phase"] == "running":
        yield "Wait for it. If its holder hangs, end that process, and the claim ends with it."
    elif run["phase"] == "abandoned":
        yield f"How far it got is not known. Look at what it did; then {GO_ON}, {again}"
    elif run["phase"] == "failed":
        orders = again if run["unfinished"] else ""
        yield f"Mend the cause; then {GO_ON}{', ' if orders else ''}{orders}"
