"""The demo's verdict and table: no fault in the figures goes unsaid."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from remit_gates._demo.figures import Call, Figures, Result, faults, verdict
from remit_gates._demo.report import Paint, text
from remit_gates._demo.scenes import scenes


def right() -> list[Result]:
    """Figures without a fault in them, for each test to put one in."""
    results = []
    for each in scenes(3):
        refused = Call(
            2,
            "refused",
            kind="InProgress",
            reason="in_progress",
            http_status=409,
            retry_after=29.7,
            served=1,
        )
        calls = [
            Call(1, "served", ("approve", "charge", "notify")),
            *(replace(refused, caller=caller) for caller in range(2, each.callers + 1)),
        ]
        figures = Figures(dict(each.effects), tuple(calls), each.waiting)
        results.append(Result(each, {"stock": figures, "gated": figures}))
    return results


def with_call(figures: Figures, index: int, **changes: Any) -> Figures:
    calls = list(figures.calls)
    calls[index] = replace(calls[index], **changes)
    return replace(figures, calls=tuple(calls))


BROKEN: dict[str, Callable[[Figures], Figures]] = {
    "an effect twice": lambda f: replace(f, effects={**f.effects, "charge refund $10": 2}),
    "an effect missing": lambda f: replace(f, effects={**f.effects, "notify refund $10": 0}),
    "an effect unheard of": lambda f: replace(f, effects={**f.effects, "charge x": 1}),
    "a caller missing": lambda f: replace(f, calls=f.calls[:-1]),
    "nobody served": lambda f: with_call(f, 0, state="refused", kind="X", reason="x", nodes=()),
    "two served": lambda f: with_call(f, 1, state="served"),
    "a caller failed": lambda f: with_call(f, 1, state="failed", kind="OperationalError"),
    "a node ran for the refused": lambda f: with_call(f, 1, nodes=("approve",)),
    "a refusal without a type": lambda f: with_call(f, 1, reason=None),
    "another question": lambda f: replace(f, waiting=("something else?",)),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("index", range(3))
def test_the_verdict_names_every_fault(broken: str, index: int) -> None:
    results = right()
    assert faults(results, "gated") == []
    result = results[index]
    columns = {**result.columns, "gated": BROKEN[broken](result.columns["gated"])}
    results[index] = replace(result, columns=columns)
    found = faults(results, "gated")
    assert found
    assert all(fault.startswith(f"{result.scene.name}: ") for fault in found)
    assert verdict(results).startswith(f"WRONG: gated, {found[0]}")
    assert faults(results, "stock") == []


def test_the_wrong_caller_served_is_a_fault_where_the_order_is_given() -> None:
    def swapped(figures: Figures) -> Figures:
        first, second, *rest = figures.calls
        calls = (replace(second, caller=1), replace(first, caller=2), *rest)
        return replace(figures, calls=calls)

    results = [
        replace(result, columns={**result.columns, "gated": swapped(result.columns["gated"])})
        for result in right()
    ]
    assert [fault.partition(":")[0] for fault in faults(results, "gated")] == ["late", "next"]


def test_nothing_played_is_not_right() -> None:
    assert faults([], "gated")
    assert faults([replace(right()[0], columns={})], "gated")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_table_is_plain_and_narrow() -> None:
    table = text(right(), "about", Paint(io.StringIO()))
    assert "\x1b" not in table
    assert max(map(len, table.splitlines())) < 100
    assert "race, callers 2-3: InProgress (409): caller 1 holds the run" in table


def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[32m" in text(right(), "about", Paint(Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in text(right(), "about", Paint(Terminal()))
