"""What one resume of a CrewAI flow costs with a gate and without, measured in turns in one
process, so that whatever else the machine does falls on both alike."""

# CrewAI reads annotations as they are, so they must not be strings here.
# ruff: noqa: I002
# CrewAI is absent where types are checked, so its decorators have none.
# pyright: reportUntypedFunctionDecorator=false

import contextlib
import io
import os
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any


os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_VERSION_CHECK="true",
    CREWAI_TESTING="true",
    CREWAI_TRACING_ENABLED="false",
    OTEL_SDK_DISABLED="true",
)

from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import SQLiteFlowPersistence

from benchmarks.turns import timed, turns


class _Asks:
    def request_feedback(self, context: Any, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


class Asking(Flow):
    """One pause and one listener, and no memory, which takes seconds to set up."""

    _skip_auto_memory = True

    @start()
    @human_feedback(message="pay?", provider=_Asks())
    def ask(self) -> str:
        return "a text"

    @listen(ask)
    def act(self, result: Any) -> str:
        return "done"


def measure(count: int, block: int) -> dict[str, float]:
    """Median milliseconds of loading a flow and resuming it, and of a refused duplicate, on
    one SQLite file; gated and stock."""
    from remit_gates.crewai import gate

    times: dict[str, list[float]] = defaultdict(list)
    # What CrewAI prints would be most of what is measured.
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        stock = SQLiteFlowPersistence(str(Path(folder) / "flows.db"))
        kinds = {"stock": stock, "gate": gate(stock)}
        for name, _ in turns(kinds, count, times.clear, block):
            run = _parked(kinds[name])
            with timed(times, f"{name}: resume"):
                Asking.from_pending(run, kinds[name]).resume("yes")
        # Apart, since what a refusal leaves to be cleared away would be the next resume's.
        for name, persistence in kinds.items():
            for _ in range(count):
                run = _parked(persistence)
                late = Asking.from_pending(run, persistence)
                Asking.from_pending(run, persistence).resume("yes")
                with timed(times, f"{name}: late duplicate"), contextlib.suppress(ValueError):
                    late.resume("yes")
    return {name: statistics.median(values) * 1000 for name, values in times.items()}


def _parked(persistence: Any) -> str:
    run: str = Asking(persistence=persistence).kickoff().context.flow_id
    return run


def show(costs: dict[str, float]) -> None:
    """Print the row, and whether it is within the target: at most 15 % added."""
    stock, gated = costs["stock: resume"], costs["gate: resume"]
    print(f"\ncrewai, sqlite: median milliseconds{'':10}stock    gate")
    print(f"  {'from_pending and resume':38} {stock:7.2f} {gated:7.2f}")
    late = (costs[f"{name}: late duplicate"] for name in ("stock", "gate"))
    print(f"  {'late duplicate, which stock runs':38}", *(f"{cell:7.2f}" for cell in late))
    added = 100 * (gated - stock) / stock
    verdict = "within" if added <= 15 else "OVER"
    print(f"  added by the gate: {added:.1f} %, {verdict} the target of 15 %")
