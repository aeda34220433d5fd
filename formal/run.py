"""Check every model with TLC, and print one table: model, states, verdict, time.

A verdict that is not the expected one ends the run with an error.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product

import checks
from tlc import Check, Unusable, committed, configuration, run, some


WIDE = 50
FAULT = 18

JOBS = min(os.cpu_count() or 1, 4)
"""Models at a time. TLC has one worker for each: two small models side by side take less than
one after the other, and so do two large ones."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also the scaled models")
    parser.add_argument("--only", default="", metavar="WORD", help="only models named like this")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help="models at a time")
    parser.add_argument("--trace", action="store_true", help="print what TLC found, state by state")
    parser.add_argument("--config", action="store_true", help="print configurations, run nothing")
    args = parser.parse_args()
    if args.config:
        for check in (*every(), *checks.full()):
            if args.only in check.name:
                sys.stdout.write(f"\\* {check.module}: {check.name}\n{configuration(check)}\n")
        return
    try:
        sys.exit(Table(args.only, trace=args.trace, jobs=args.jobs).all(full=args.full))
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


@dataclass(frozen=True)
class Row:
    """What a line of the table says, and what is printed below it."""

    name: str
    states: int
    verdict: str
    seconds: float
    wrong: bool
    more: str = ""


Part = tuple[str, list[Future[Row]]]


class Table:
    """Prints a line a model, and counts the verdicts that were not expected. Models are checked
    side by side, and printed in the order of the table."""

    def __init__(self, only: str, *, trace: bool, jobs: int) -> None:
        self.only = only
        self.trace = trace
        self.wrong = 0
        self.models = 0
        self.states = 0
        self.began = time.monotonic()
        self.pool = ThreadPoolExecutor(jobs)

    def all(self, *, full: bool) -> int:
        """Everything; 1 if a verdict was wrong."""
        try:
            parts = [*self.parts(full=full)]
            self.line("model", "states", "verdict", "time")
            for title, rows in parts:
                self.part(title, rows)
        finally:
            self.pool.shutdown(cancel_futures=True)
        took = time.monotonic() - self.began
        wrong = f"{self.wrong} WRONG" if self.wrong else "all as expected"
        self.line(f"{self.models} models", f"{self.states:,}", wrong, f"{took:.0f} s")
        return min(self.wrong, 1)

    def parts(self, *, full: bool) -> Iterator[Part]:
        """The sections of the table, whose models are on their way."""
        yield "the contract: reference and companions", self.each(checks.contract())
        faults = [fault for fault in checks.FAULTS if self.wants("matrix", fault)]
        yield matrix_title(), [self.pool.submit(self.fault, fault) for fault in faults]
        alone = [pair for pair in checks.companions() if self.wants("companions", pair[0].name)]
        yield (
            "the contract: properties that fail alone",
            [self.pool.submit(self.companion, *pair) for pair in alone],
        )
        yield "the gate: safety", self.each(checks.safety())
        yield "the gate: safety under each policy", self.each(checks.every_policy())
        yield "the gate: liveness under each policy", self.each(checks.liveness())
        yield "the gate: either of two defences alone", self.each(checks.harmless())
        yield "the gate: broken twins, each to be refuted", self.each(checks.twins())
        if full:
            yield "scaled", self.each(checks.full())

    def wants(self, *names: str) -> bool:
        return any(self.only in name for name in names)

    def each(self, wanted: Iterable[Check]) -> list[Future[Row]]:
        return [self.pool.submit(self.one, check) for check in wanted if self.wants(check.name)]

    def part(self, title: str, rows: list[Future[Row]]) -> None:
        """One section of the table, a line as soon as its model is done."""
        if rows:
            self.say(f"\n{title}")
        for row in (each.result() for each in rows):
            self.models += 1
            self.states += row.states
            self.wrong += row.wrong
            verdict = f"WRONG: {row.verdict}" if row.wrong else row.verdict
            self.line(row.name, f"{row.states:,}", verdict, f"{row.seconds:.1f} s")
            if row.more:
                self.say(row.more)

    def one(self, check: Check) -> Row:
        """Run a model, and compare."""
        result = run(check)
        wrong = result.violated != check.refutes
        more = brief(result.output) if self.trace or wrong else ""
        return Row(check.name, result.states, result.verdict(), result.seconds, wrong, more)

    def fault(self, fault: str) -> Row:
        """A row of the matrix, as found and as expected."""
        broken, states, seconds = sieve(Check(fault, "ResumeContract", {"Fault": some(fault)}))
        small = {**checks.SMALL, "Fault": some(fault)}
        live = run(Check(fault, "ResumeContract", small, (), ("Live",), "FairSpec"))
        if live.violated is not None:
            broken |= {live.violated}
        expected = checks.FAULTS[fault]
        seconds += live.seconds
        row = f"{fault:<{FAULT}}{cells(broken, expected)}"
        return Row(row, states + live.states, "", seconds, broken != expected)

    def companion(self, check: Check, expected: frozenset[str]) -> Row:
        """What fails in a companion model; everything else then holds."""
        broken, states, seconds = sieve(check)
        said = f"{' '.join(sorted(broken))} refuted"
        return Row(check.name, states, said, seconds, broken != expected)

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


def sieve(check: Check) -> tuple[frozenset[str], int, float]:
    """All invariants that fail, each refuted with a trace; the states of the last run, in which
    the others hold; and the time that all of it took."""
    left = committed(check.module).invariants
    broken: set[str] = set()
    seconds = 0.0
    while True:
        result = run(replace(check, invariants=left))
        seconds += result.seconds
        if result.violated is None:
            return frozenset(broken), result.states, seconds
        broken.add(result.violated)
        left = tuple(name for name in left if name != result.violated)


def matrix_title() -> str:
    """What the matrix is, and its columns."""
    counted = sum(checks.counted(*cell) for cell in product(checks.FAULTS, checks.NAMES))
    others = len(checks.FAULTS) * len(checks.NAMES) - counted
    names = "".join(f"{name:<4}" for name in checks.NAMES)
    return (
        f"the contract: fault by property, {counted} cells and {others} more"
        f" (. holds, X refuted with a trace, ! not as expected)\n  {'':<{FAULT}}{names}"
    )


def cells(broken: frozenset[str], expected: frozenset[str]) -> str:
    """A row of the matrix."""
    return "".join(
        f"{('X' if name in broken else '.') + ('!' if name in broken ^ expected else ''):<4}"
        for name in checks.NAMES
    )


if __name__ == "__main__":
    main()
