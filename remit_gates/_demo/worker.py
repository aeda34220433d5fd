"""One process of the demo: it does what it is told, a line of JSON at a time, and answers
each order with one line.

Both columns go through the same code here; they differ in whether the checkpointer went
through `gate()`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TextIO

from langgraph.types import Command

from remit_gates._demo.graph import Graph, build
from remit_gates._demo.journal import Journal, provider_answers
from remit_gates._demo.savers import open_saver
from remit_gates.errors import ResumeRefused


class Worker:
    """The graphs of this process, by column, and what it can do with them."""

    def __init__(self, folder: Path, store: str | None, stack: ExitStack) -> None:
        self._folder = folder
        self._store = store
        self._stack = stack
        self._graphs: dict[str, Graph] = {}
        self._journal = stack.enter_context(closing(Journal(folder)))

    def open(self, column: str, gated: bool, setup: bool) -> None:
        """Open the checkpointer of `column` and compile the graph on it."""
        path = self._folder / f"{column}.db"
        saver = self._stack.enter_context(open_saver(path, self._store, gated=gated, setup=setup))
        self._graphs[column] = build(saver, self._journal)
        # A process is slow at its first call, and racers are to arrive together.
        run = f"demo-warm-{column}-{os.getpid()}"
        provider_answers(self._folder, run)
        self.park(column, run, ["warm up"])
        self.answer(column, run, 0, 0.0, None)
        self.forget(column, run)

    def park(self, column: str, run: str, todo: list[str]) -> None:
        """Start `run`, which stops at its first question."""
        self._journal.run, self._journal.caller = run, 0
        self._graphs[column].invoke({"todo": todo}, _config(run))

    def answer(
        self, column: str, run: str, caller: int, at: float, delivery: str | None
    ) -> dict[str, Any]:
        """Answer yes to `run` at the moment `at`; say whether the call was served."""
        self._journal.run, self._journal.caller = run, caller
        graph, config = self._graphs[column], _config(run, delivery)
        time.sleep(max(0.0, at - time.time()))
        try:
            graph.invoke(Command(resume="yes"), config)
        except ResumeRefused as refused:
            return _refusal(refused)
        except Exception as error:  # noqa: BLE001  whatever it is, this caller was not served
            return {"state": "failed", "kind": type(error).__name__, "message": str(error)}
        return {"state": "served"}

    def look(self, column: str, run: str) -> list[str]:
        """The questions that `run` asks now."""
        state = self._graphs[column].get_state(_config(run))
        return [str(ask.value) for task in state.tasks for ask in task.interrupts]

    def forget(self, column: str, run: str) -> None:
        """Delete `run` where it is stored."""
        saver = self._graphs[column].checkpointer
        if not isinstance(saver, bool) and saver is not None:
            saver.delete_thread(run)


def _config(run: str, delivery: str | None = None) -> Any:
    options = {} if delivery is None else {"remit_delivery": delivery}
    return {"configurable": {"thread_id": run, **options}}


def _refusal(refused: ResumeRefused) -> dict[str, Any]:
    held_by = refused.claim or refused.consumption
    return {
        "state": "refused",
        "kind": type(refused).__name__,
        "message": str(refused),
        "reason": refused.reason.value,
        "http_status": refused.http_status,
        "retry_after": refused.retry_after,
        "served_pid": None if held_by is None else held_by.holder.pid,
    }


def main() -> None:
    """Serve orders until the standard input ends."""
    replies = _replies()
    # A store's URL may hold a password, and arguments are there for all to see.
    settings = json.loads(sys.stdin.readline())
    with ExitStack() as stack:
        worker = Worker(Path(settings["folder"]), settings["store"], stack)
        _reply(replies, {"ready": True})
        for line in sys.stdin:
            order = json.loads(line)
            act: Callable[..., object] = getattr(worker, order.pop("do"))
            try:
                _reply(replies, {"done": act(**order)})
            except Exception as error:  # noqa: BLE001  the one who gave the order decides
                _reply(replies, {"error": f"{type(error).__name__}: {error}"})


def _replies() -> TextIO:
    """The standard output, for replies only: what a library prints goes elsewhere."""
    kept = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return kept


def _reply(replies: TextIO, reply: dict[str, object]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
