"""`remit-gates doctor`: what can make a gate lose a claim, found before it does. It looks and
changes nothing."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from typing import Any, Final

from remit_gates._cli.common import document, looking
from remit_gates._cli.setup import PROBE
from remit_gates._cli.tables import table
from remit_gates.errors import (
    SchemaMismatch,
    SetupRequired,
    StoreError,
    StoreMisconfigured,
    UsageError,
)
from remit_gates.stores import Store
from remit_gates.stores._checks import Check


FRAMEWORKS: Final = {
    "langgraph": ("langgraph",),
    "crewai": ("crewai",),
    "pydantic_graph": ("pydantic-graph", "pydantic-ai-slim"),
}
"""The adapters, and the distributions that each of them gates. An adapter can be imported only
where one of them is installed."""

DRIFT: Final = 1.0
"""Seconds by which a clock may be off before it is worth a word."""


def doctor(arguments: argparse.Namespace) -> int:
    """Look at a store and at what is installed here, and print a line for each thing.

    Raises:
        StoreMisconfigured: The store's settings can lose a claim.
    """
    with looking(arguments.url) as store:
        reach = tuple(_reach(store))
        reached = not any(check.name == "connection" and check.state == "fail" for check in reach)
        settings = tuple(_settings(store)) if reached else ()
    found = (*reach, *settings, *_frameworks())
    failed = [check for check in found if check.state == "fail"]
    if arguments.json:
        document({"ok": not failed, "checks": [asdict(check) for check in found]})
    else:
        table(("STATE", "CHECK", "FOUND"), [_row(check) for check in found])
    lost = [check for check in settings if check.state == "fail"]
    if lost:
        raise StoreMisconfigured(
            f"The store can lose a claim that it acknowledged, or take none:"
            f" {', '.join(check.name for check in lost)}. Nothing was changed."
        )
    return 1 if failed else 0


def _row(check: Check) -> tuple[str, str, str]:
    return check.state, check.name, check.says + (f"; {check.mend}" if check.mend else "")


def _reach(store: Store) -> Iterator[Check]:
    """Whether the store answers, has its table, and agrees on the time."""
    began, before = time.monotonic(), time.time()
    try:
        now = store.read(PROBE).now
    except (SetupRequired, SchemaMismatch) as error:
        says = str(error).partition(". ")[0]
        yield Check("schema", "fail", says, _mended(error))
        return
    except StoreError as error:
        mend = "look at the URL, the network and the server"
        yield Check("connection", "fail", str(error), mend)
        return
    took = time.monotonic() - began
    yield Check("connection", "ok", f"the store answers, in {took * 1000:.0f} ms with connecting")
    yield Check("schema", "ok", "in place, and not of a newer release")
    yield _clock(now - before, took)


def _mended(error: StoreError) -> str:
    if isinstance(error, SetupRequired):
        return "remit-gates setup URL"
    return "upgrade remit-gates on this host"


def _clock(ahead: float, took: float) -> Check:
    """What to say of a clock that was `ahead` of this host's when an answer was asked for,
    which came `took` seconds later."""
    off = max(0.0, ahead - took) if ahead > 0 else ahead
    if abs(off) <= DRIFT:
        return Check("clock", "ok", f"the store's and this host's differ by {abs(off):.1f} s")
    return Check(
        "clock",
        "warn",
        f"the store's is {abs(off):.1f} s {'ahead of' if off > 0 else 'behind'} this host's;"
        " leases live by the store's, so no claim is at risk",
        "have both keep time by NTP",
    )


def _settings(store: Any) -> Iterator[Check]:
    """What the store says of itself, as far as its kind can."""
    checks, misconfigured = (getattr(store, name, None) for name in ("checks", "misconfigured"))
    try:
        if checks is not None:
            yield from checks()
        if misconfigured is not None:
            faults = misconfigured()
            yield from (Check("settings", "fail", fault) for fault in faults)
            if not faults:
                yield Check("settings", "ok", "nothing there that can lose a claim")
    except SetupRequired:
        return  # there is nothing yet to look at, which was told
    except StoreError as error:
        yield Check("settings", "fail", str(error), "look at the server's log")


def _frameworks() -> Iterator[Check]:
    """Whether the frameworks that are installed here can be gated: their release, and all that
    the gate hooks into."""
    for adapter, distributions in FRAMEWORKS.items():
        for name in distributions:
            try:
                version = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
            try:
                versions = importlib.import_module(f"remit_gates.{adapter}._versions")
                says = versions.CHECKS[name]()
            except UsageError as error:
                yield Check(name, "fail", str(error), "install a release that is supported")
            else:
                told = says if isinstance(says, str) else "can be gated"
                yield Check(name, "ok", f"{version} {told}")
