"""What CrewAI asks of a persistence that is not gated, written to the standard output.

Run as a program: with the argument `hooked`, a gate is made beside it, for something else.
"""

# CrewAI is absent where types are checked, so its decorators and classes have none.
# pyright: reportCallIssue=false

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.adapters.hermetic import attempts, load
from tests.journal import Journal


load()

from crewai.flow.persistence import SQLiteFlowPersistence  # noqa: E402

from tests.adapters import flows  # noqa: E402


NAMES = (
    "save_state",
    "load_state",
    "save_pending_feedback",
    "load_pending_feedback",
    "clear_pending_feedback",
)


class Spy(SQLiteFlowPersistence):
    """Remembers each call as it was written: its name, positions, keywords and types."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in NAMES:
            return found

        def spied(*args: Any, **kwargs: Any) -> Any:
            given = [type(arg).__name__ for arg in args]
            calls.append([name, given, {key: type(kwargs[key]).__name__ for key in kwargs}])
            return found(*args, **kwargs)

        return spied


calls: list[Any] = []


def told(call: Any) -> str:
    try:
        result = call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return result if isinstance(result, str) else type(result).__name__


def scenes(folder: str) -> list[Any]:
    """What comes of a few flows on a persistence that is not gated."""
    bare = Spy(f"{folder}/flows.db")
    run = str(flows.Twice(persistence=bare).kickoff(inputs={"id": "twice"}).context.flow_id)
    one, other = (flows.Twice.from_pending(run, bare) for _ in range(2))
    out = [told(lambda: one.resume("yes")), told(lambda: one.resume("no"))]
    # A duplicate, which stock serves once more.
    out += [told(lambda: other.resume("yes")), told(lambda: other.resume("no", remit_actor="x"))]
    flows.Plain(persistence=bare).kickoff(inputs={"id": "plain"})
    out += [told(lambda: asyncio.run(flows.Plain.from_pending("plain", bare).resume_async("yes")))]
    out += [told(lambda: flows.Plain.from_pending("plain", bare))]
    cls = flows.counting(bare)
    out += [told(lambda: cls().kickoff(inputs={"id": "count"}))]
    out += [told(lambda: cls.from_pending("count", bare).resume("7"))]
    steps = flows.stepping(bare)
    out += [told(lambda: steps().kickoff(inputs={"id": "steps"})) for _ in range(2)]
    out += [told(lambda: steps().kickoff(restore_from_state_id="steps"))]
    out += [told(lambda: flows.Steps().kickoff())]
    runs = ("twice", "plain", "count", "steps")
    return [out, calls, [flows.current[-1].steps(run) for run in runs], attempts]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        flows.current.append(Journal(Path(name)))
        if "hooked" in sys.argv:
            from remit_gates.crewai import gate

            gated = gate(SQLiteFlowPersistence(f"{name}/other.db"))
            paused: Any = flows.Plain(persistence=gated).kickoff()
            flows.Plain.from_pending(str(paused.context.flow_id), gated).resume("yes")
        print("\n" + json.dumps(scenes(name)))
