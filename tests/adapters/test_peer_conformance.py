"""A gated saver passes LangGraph's own suite for savers exactly as its bare one does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from remit_gates.langgraph import gate
from tests.adapters.bridge import bridged
from tests.adapters.kinds import KINDS, Places


pytestmark = pytest.mark.newest

KINDS_HERE = ["memory", "sqlite-async", "postgres-async", "sqlite", "postgres"]

ELSEWHERE = ["redis", "redis-async"]
"""Those that fail some of the suite by themselves, gated or not."""


def report(kind: str, places: Places, *, gated: bool) -> Any:
    """What the suite finds of a saver of one kind."""
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    async def savers() -> AsyncIterator[Any]:
        async with contextlib.AsyncExitStack() as stack:
            opened = KINDS[kind].open(places)
            if isinstance(opened, contextlib.AbstractAsyncContextManager):
                saver = await stack.enter_async_context(opened)
            else:
                saver = stack.enter_context(opened)
            if gated:
                saver = gate(saver)
            if hasattr(saver, "setup"):
                made = saver.setup()
                if made is not None:
                    await made
            yield saver if kind == "memory" or KINDS[kind].awaited else bridged(saver)
            if gated:
                await _hang_up(saver)

    # The suite decides by the name under which it was registered.
    return asyncio.run(validate(checkpointer_test(name=f"{kind} {gated}")(savers)))


async def _hang_up(saver: Any) -> None:
    for stores, name in ((saver._remit, "store"), (saver._remit, "astore")):
        store = vars(stores).get(name)
        closing = None if store is None else store.close()
        if closing is not None:
            await closing


def _names(failures: list[str] | None) -> set[str]:
    """The tests that failed, without what they saw, which is another each time."""
    return {failure.partition(":")[0] for failure in failures or ()}


def differs(kind: str, places: Places) -> list[str]:
    """Where the suite tells a gated saver of `kind` from a bare one."""
    bare, gated = (report(kind, places, gated=gated) for gated in (False, True))
    out = []
    if not gated.passed_all_base() and kind not in ELSEWHERE:
        out.append("it fails what every saver must do")
    for name, found in bare.results.items():
        other = gated.results[name]
        if found.detected != other.detected:
            out.append(f"{name}: detected {other.detected}, bare {found.detected}")
        if _names(other.failures) - _names(found.failures):
            out.append(f"{name}: {other.failures}")
        if found.tests_passed != other.tests_passed:
            out.append(f"{name}: {other.tests_passed} passed, bare {found.tests_passed}")
    passed = sum(found.tests_passed for found in gated.results.values())
    if passed < 40:
        out.append(f"only {passed} tests ran")
    return out


@pytest.mark.parametrize("kind", [*KINDS_HERE, *ELSEWHERE])
def test_the_suite_cannot_tell_a_gated_saver(kind: str, places: Places) -> None:
    assert differs(kind, places) == []


STRICT = """
import sys
from pathlib import Path
from tests.adapters.test_peer_conformance import KINDS_HERE, differs
from tests.adapters.kinds import Places
places = Places(Path(sys.argv[1]), lambda name="": sys.argv[2])
found = {kind: differs(kind, places) for kind in KINDS_HERE}
assert not any(found.values()), found
print(len(found))
"""


def test_nor_when_types_are_strict(places: Places, postgres_url: str, tmp_path: Path) -> None:
    """LangGraph reads the setting when it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", STRICT, str(tmp_path), postgres_url],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(len(KINDS_HERE))]


STRICT_TABLE = ["racing", "interrupts", "failures"]


def test_the_table_holds_when_types_are_strict() -> None:
    """A saver that LangGraph copies to be strict is still gated."""
    here = Path(__file__).parent
    files = [str(here / f"test_langgraph_{name}.py") for name in STRICT_TABLE]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-k", "memory or sqlite"),
            *("-p", "no:cacheprovider", "--timeout", "60"),
            *files,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
        cwd=here.parents[1],
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
