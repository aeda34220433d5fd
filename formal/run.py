"""Check every model with TLC, and print one table: model, states, verdict, time.

A verdict that is not the expected one ends the run with an error.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import checks
from tlc import Check, Unusable, committed, configuration, run, some


WIDE = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also the scaled models")
    parser.add_argument("--only", default="", metavar="WORD", help="only models named like this")
    parser.add_argument("--trace", action="store_true", help="print what TLC found, state by state")
    parser.add_argument("--config", action="store_true", help="print configurations, run nothing")
    args = parser.parse_args()
    if args.config:
        for check in (*every(), *checks.full()):
            if args.only in check.name:
                sys.stdout.write(f"\\* {check.module}: {check.name}\n{configuration(check)}\n")
        return
    try:
        sys.exit(Table(args.only, trace=args.trace).all(full=args.full))
    except Unusable as error:
        sys.exit(str(error))


def every() -> Iterable[Check]:
    """What is checked by itself; the matrix and the companions come on top."""
    yield from checks.contract()
    yield from checks.safety()
    yield from checks.every_policy()
    yield from checks.liveness()
    yield from checks.harmless()
    yield from checks.twins()


class Table:
    """Prints a line a model, and counts the verdicts that were not expected."""

    def __init__(self, only: str, *, trace: bool) -> None:
        self.only = only
        self.trace = trace
        self.wrong = 0
        self.models = 0
        self.states = 0
        self.began = time.monotonic()

    def all(self, *, full: bool) -> int:
        """Everything; how many verdicts were wrong."""
        self.line("model", "states", "verdict", "time")
        self.part("the contract: reference and companions", checks.contract())
        self.matrix()
        self.companions()
        self.part("the gate: safety", checks.safety())
        self.part("the gate: safety under each policy", checks.every_policy())
        self.part("the gate: liveness under each policy", checks.liveness())
        self.part("the gate: either of two defences alone", checks.harmless())
        self.part("the gate: broken twins, each to be refuted", checks.twins())
        if full:
            self.part("scaled", checks.full())
        took = time.monotonic() - self.began
        wrong = f"{self.wrong} WRONG" if self.wrong else "all as expected"
        self.line(f"{self.models} models", f"{self.states:,}", wrong, f"{took:.0f} s")
        return min(self.wrong, 1)

    def part(self, title: str, wanted: Iterable[Check]) -> None:
        """One section of the table."""
        chosen = [check for check in wanted if self.only in check.name]
        if chosen:
            self.say(f"\n{title}")
        for check in chosen:
            self.one(check)

    def one(self, check: Check) -> None:
        """Run a model, and compare."""
        result = run(check)
        self.models += 1
        self.states += result.states
        good = result.violated == check.refutes
        self.wrong += not good
        verdict = result.verdict() if good else f"WRONG: {result.verdict()}"
        self.line(check.name, f"{result.states:,}", verdict, f"{result.seconds:.1f} s")
        if self.trace or not good:
            self.say(brief(result.output))

    def matrix(self) -> None:
        """Faults by properties, as found and as expected."""
        if self.only and self.only != "matrix":
            return
        began, states, rows = time.monotonic(), 0, []
        names = (*checks.PROPERTIES, *checks.OBLIGATIONS)
        for fault, expected in checks.FAULTS.items():
            broken, seen = sieve(Check(fault, "ResumeContract", {"Fault": some(fault)}))
            small = {**checks.SMALL, "Fault": some(fault)}
            live = run(Check(fault, "ResumeContract", small, (), ("Live",), "FairSpec"))
            states += seen + live.states
            broken |= {live.violated} - {None}
            cells = [cell(name in broken, name in expected) for name in names]
            self.wrong += sum("!" in one for one in cells)
            rows.append((fault, cells))
        self.say(
            "\nthe contract: fault by property (. holds, X refuted with a trace, ! not as expected)"
        )
        self.say(f"  {'':<18}" + "".join(f"{name:>6}" for name in names))
        for fault, cells in rows:
            self.say(f"  {fault:<18}" + "".join(f"{one:>6}" for one in cells))
        self.models += len(rows)
        self.states += states
        counted = sum(checks.counted(fault, name) for fault in checks.FAULTS for name in names)
        took = f"{time.monotonic() - began:.1f} s"
        self.line(f"{counted} cells, and {len(rows) * len(names) - counted} more", f"{states:,}", "", took)

    def companions(self) -> None:
        """What fails in each companion model, and what then holds."""
        if self.only and self.only != "companions":
            return
        self.say("\nthe contract: properties that fail alone")
        for check, expected in checks.companions():
            began = time.monotonic()
            broken, states = sieve(check)
            good = broken == expected
            self.wrong += not good
            self.models += 1
            self.states += states
            said = f"{'' if good else 'WRONG: '}{' '.join(sorted(broken))} refuted"
            self.line(check.name, f"{states:,}", said, f"{time.monotonic() - began:.1f} s")

    def line(self, name: str, states: str, verdict: str, took: str) -> None:
        self.say(f"  {name:<{WIDE}} {states:>10}  {verdict:<36} {took:>8}")

    say: Callable[[str], None] = staticmethod(lambda text: print(text, flush=True))


def brief(output: str) -> str:
    """A trace of TLC, of each state only what changed."""
    lines, before = [], set[str]()
    for part in re.split(
        r"^(?=State \d+:|Back to state|\d+: Stuttering)", output, flags=re.MULTILINE
    )[1:]:
        head, *rest = part.split("\n", 1)
        values = re.sub(r"\s+", " ", rest[0] if rest else "").split("/\\ ")
        now = {value.strip() for value in values if " = " in value}
        lines += [
            re.sub(r" line .*", "", head),
            *(f"    {value}" for value in sorted(now - before)),
        ]
        before = now
    return "\n".join(lines)


def sieve(check: Check) -> tuple[frozenset[str], int]:
    """All invariants that fail, each refuted with a trace, and the states of the last run, in
    which the others hold."""
    left = committed(check.module).invariants
    broken: set[str] = set()
    while True:
        result = run(replace(check, invariants=left))
        if result.violated is None:
            return frozenset(broken), result.states
        broken.add(result.violated)
        left = tuple(name for name in left if name != result.violated)


def cell(broken: bool, expected: bool) -> str:
    return ("X" if broken else ".") + ("" if broken == expected else "!")


if __name__ == "__main__":
    main()
