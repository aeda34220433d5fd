"""The demo from the command line: the exit status is 0 only if the gated column is right."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Final

from remit_gates._console import terminable
from remit_gates._demo.figures import Figures, Result, Scene, faults
from remit_gates._demo.pool import workers
from remit_gates._demo.report import Paint, document, progress, text
from remit_gates._demo.savers import is_postgres
from remit_gates._demo.scenes import open_columns, play
from remit_gates.errors import MissingExtra, UsageError
from remit_gates.stores import open_store


RACERS: Final = range(2, 65)


def demo(racers: int = 8, store: str | None = None, as_json: bool = False) -> int:
    """Play the demo and print it; the exit status.

    Args:
        racers: How many processes race for one answer.
        store: URL of the store of the gated column; None for embedded SQLite.
        as_json: Print JSON and nothing else.

    Raises:
        MissingExtra: LangGraph or the checkpointer is not installed.
        UsageError: The store is not one that processes can share.
        TimeoutError: A worker hangs.
        ChildProcessError: A worker died, or could not reach the store.
    """
    _check(store)
    began = time.monotonic()
    results = _results(racers, store)
    about = {
        "langgraph": metadata.version("langgraph"),
        "checkpointer": "postgres" if is_postgres(store) else "sqlite",
        "store": "the checkpointer's database" if store is None else store.partition(":")[0],
        "racers": racers,
        "seconds": round(time.monotonic() - began, 1),
    }
    if as_json:
        report = document(results, about)
    else:
        line = (
            f"LangGraph {about['langgraph']}, checkpoints in {about['checkpointer']}, claims in"
            f" {about['store']}, {racers} processes, {about['seconds']} s"
        )
        report = text(results, line, Paint(sys.stdout))
    sys.stdout.write(report + "\n")
    return 1 if faults(results, "gated") else 0


def _results(racers: int, store: str | None) -> list[Result]:
    with terminable(), tempfile.TemporaryDirectory(prefix="remit-gates-demo-") as name:
        folder = Path(name)
        _say(f"starting {racers} processes")
        with workers(racers, folder, store) as pool:
            _say("opening both columns")
            open_columns(pool)
            return list(play(pool, folder, _tell))


def _tell(scene: Scene, column: str, figures: Figures) -> None:
    _say(progress(scene, column, figures))


def _say(line: str) -> None:
    sys.stderr.write(f"demo: {line}\n")
    sys.stderr.flush()


def _check(store: str | None) -> None:
    if store is not None and store.startswith("memory:"):
        raise UsageError(f"{store} lives in one process, and the demo runs several.")
    saver, install = "sqlite", "'remit-gates[langgraph,sqlite]'"
    if is_postgres(store):
        # The extra holds the driver; LangGraph's own saver is a package beside it.
        saver = "postgres"
        install = "'remit-gates[langgraph,postgres]' langgraph-checkpoint-postgres"
    for module in ("langgraph.graph", f"langgraph.checkpoint.{saver}"):
        if not _installed(module):
            raise MissingExtra(
                f"The demo needs {module}, which is not installed: pip install {install}"
            )
    if store is not None:
        # What is wrong with the URL itself is better said before any process starts.
        open_store(store).close()


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
