"""Who is refused writes nothing, and who only looks asks the gate's store nothing."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import AlreadyConsumed, InProgress, open_store
from remit_gates._gate import Gate
from remit_gates.langgraph import gate
from tests.journal import Journal
from tests.races.graph import build, config
from tests.races.savers import saver
from tests.unit.staged import Watched


YES: Any = Command(resume="yes")
WRITES = (
    *("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "BEGIN IMMEDIATE", "WITH"),
    *("SET", "DEL", "ZADD", "ZREM", "EXPIRE", "PERSIST", "JSON.SET", "JSON.MERGE", "FT.CREATE"),
)


class Bench:
    """A graph, with its gate's store and every statement of its checkpointer watched."""

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        store = open_store(url)
        store.setup()
        stack.callback(store.close)
        self.store = Watched(store)
        self.sent: list[str] = []
        self._stock = stack.enter_context(saver(url, lambda it: it))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if hasattr(self._stock, "_redis"):
            self._overhear(self._stock._redis.connection_pool, patch)
        else:
            self._listen(self._stock.conn, patch)
        journal = Journal(folder)
        self.graph = build(gate(self._stock, store=self.store), journal)
        self.graph.invoke({"run": "r"}, config("r"))
        self.quiet()

    def _overhear(self, pool: Any, patch: pytest.MonkeyPatch) -> None:
        from redis.connection import Connection

        send: Callable[..., Any] = Connection.send_packed_command

        def heard(connection: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
            if connection in pool._in_use_connections:
                words = re.findall(rb"\*\d+\r\n\$\d+\r\n([A-Z.]+)\r\n", b"".join(command))
                self.sent += (word.decode() for word in words)
            return send(connection, command, *args, **kwargs)

        patch.setattr(Connection, "send_packed_command", heard)

    def _listen(self, connection: Any, patch: pytest.MonkeyPatch) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.set_trace_callback(self.sent.append)
            return
        import psycopg

        execute, executemany = psycopg.Cursor.execute, psycopg.Cursor.executemany

        def listening(call: Callable[..., Any]) -> Callable[..., Any]:
            def listened(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
                if cursor.connection is connection:
                    self.sent.append(query if isinstance(query, str) else bytes(query).decode())
                return call(cursor, query, *args, **kwargs)

            return listened

        patch.setattr(psycopg.Cursor, "execute", listening(execute))
        patch.setattr(psycopg.Cursor, "executemany", listening(executemany))

    def quiet(self) -> None:
        """Forget what was sent so far."""
        self.sent.clear()
        self.store.calls.clear()

    @property
    def written(self) -> list[str]:
        """What was sent to the checkpointer's database that writes."""
        return [text for text in self.sent if text.lstrip().upper().startswith(WRITES)]


@pytest.fixture
def bench(tmp_path: Path, url: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, url, stack)


def test_the_bench_hears_what_a_served_delivery_writes(bench: Bench) -> None:
    bench.graph.invoke(YES, config("r"))
    assert bench.written
    assert bench.store.calls == ["read", "swap", "swap"]


def test_a_delivery_that_comes_too_late_writes_nothing(bench: Bench) -> None:
    bench.graph.invoke(YES, config("r"))
    bench.quiet()
    with pytest.raises(AlreadyConsumed):
        bench.graph.invoke(YES, config("r"))
    assert bench.written == []
    assert set(bench.store.calls) == {"read"}


def test_a_delivery_that_finds_the_run_held_reads_one_record(bench: Bench) -> None:
    held = Gate(bench.store, framework="langgraph")
    with held.passage("r", "elsewhere"):
        bench.quiet()
        with pytest.raises(InProgress):
            bench.graph.invoke(YES, config("r"))
        # It was refused before anything was loaded for it.
        assert bench.sent == []
        assert bench.store.calls == ["read"]


@pytest.mark.parametrize(
    "look",
    [
        lambda graph: graph.get_state(config("r")),
        lambda graph: graph.get_state(config("r"), subgraphs=True),
        lambda graph: list(graph.get_state_history(config("r"))),
        lambda graph: graph.update_state(config("r"), {"answer": "edited"}),
        lambda graph: graph.invoke({"run": "r"}, config("r")),
        lambda graph: list(graph.checkpointer.list(config("r"))),
        lambda graph: graph.checkpointer.get_tuple(config("r")),
    ],
    ids=["state", "subgraphs", "history", "update", "new input", "list", "get_tuple"],
)
def test_what_answers_nothing_asks_nothing(bench: Bench, look: Callable[[Any], Any]) -> None:
    look(bench.graph)
    assert bench.sent, "it did not even reach the checkpointer"
    assert bench.store.calls == []


def test_looking_is_never_kept_waiting(bench: Bench) -> None:
    held = Gate(bench.store, framework="langgraph")
    with held.passage("r", "elsewhere"):
        assert bench.graph.get_state(config("r")).interrupts
        bench.graph.update_state(config("r"), {"answer": "edited"})
