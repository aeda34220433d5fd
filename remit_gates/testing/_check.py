"""Runs every clause, each on records of its own, and misses none without saying so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from remit_gates._drive import adrive, drive
from remit_gates._ops import Flow
from remit_gates.stores import AsyncStore, Store
from remit_gates.testing._bench import AsyncBench, SyncBench
from remit_gates.testing._clause import Clause
from remit_gates.testing._clauses import CLAUSES
from remit_gates.testing._harness import Harness
from remit_gates.testing._report import Report, Result, Violation


def clauses() -> dict[str, str]:
    """Every clause by its name, and what it demands of a store."""
    return {name: clause.states for name, clause in CLAUSES.items()}


def check_store(harness: Harness[Store], *, only: tuple[str, ...] = ()) -> Report:
    """Check a sync store against every clause.

    Args:
        harness: Makes store objects over one database; see `Harness`.
        only: Names of clauses to run instead of all. The first always runs: it sets the
            store up.
    """
    results: list[Result] = []
    opened: list[Store] = []
    bench = SyncBench(*_wired(harness, opened))
    try:
        for clause in _chosen(only):
            with _judged(clause, harness, results) as due:
                if due:
                    drive(cast("Flow[None]", clause.flow()), bench)
    finally:
        for store in opened:
            store.close()
    return Report(tuple(results))


async def check_async_store(harness: Harness[AsyncStore], *, only: tuple[str, ...] = ()) -> Report:
    """Check an async store against every clause; see `check_store`."""
    results: list[Result] = []
    opened: list[AsyncStore] = []
    bench = AsyncBench(*_wired(harness, opened))
    try:
        for clause in _chosen(only):
            with _judged(clause, harness, results) as due:
                if due:
                    await adrive(cast("Flow[None]", clause.flow()), bench)
    finally:
        for store in opened:
            await store.close()
    return Report(tuple(results))


def _wired(harness: Any, opened: list[Any]) -> tuple[Any, Any, Any]:
    """The parts of a bench; every store that it opens is closed in the end."""

    def kept(make: Callable[[], Any]) -> Any:
        store = make()
        opened.append(store)
        return store

    return (
        kept(harness),
        lambda: kept(harness),
        lambda hook: kept(getattr(harness, hook)),
    )


def _chosen(only: tuple[str, ...]) -> Iterator[Clause]:
    unknown = set(only) - set(CLAUSES)
    if unknown:
        raise ValueError(f"There is no clause called {', '.join(sorted(unknown))}.")
    # The first clause sets the store up, so no other can do without it.
    first = next(iter(CLAUSES))
    return (clause for name, clause in CLAUSES.items() if not only or name in (first, *only))


@contextlib.contextmanager
def _judged(clause: Clause, harness: Any, results: list[Result]) -> Iterator[bool]:
    """Note what becomes of `clause`; whether it is due at all."""

    def note(verdict: Literal["passed", "failed", "not run"], detail: str = "") -> None:
        results.append(Result(clause.name, clause.states, verdict, detail))

    if clause.needs is not None and not hasattr(harness, clause.needs):
        note("not run", f"the harness has no `{clause.needs}()`")
        yield False
        return
    try:
        yield True
    except Violation as violation:
        note("failed", str(violation))
    except Exception as error:  # noqa: BLE001 - whatever a store raises, it fails the clause
        note("failed", f"{type(error).__name__}: {error}")
    else:
        note("passed")
