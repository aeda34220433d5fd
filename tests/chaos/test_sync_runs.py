"""What happens to a run in a thread: its stream is closed, its user presses Ctrl-C, its
process forks, its server is restarted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from remit_gates import (
    ActiveClaim,
    AlreadyConsumed,
    ClaimLost,
    InProgress,
    Outcome,
    Policy,
    open_store,
)
from remit_gates._drive import drive
from remit_gates._heartbeat import HEARTBEAT
from remit_gates._model import RunKey
from remit_gates._port import StorePort
from remit_gates.langgraph import claim_in_node, gate
from tests.journal import Journal
from tests.races.graph import State, Update, build, config
from tests.races.savers import saver


YES: Any = Command(resume="yes")


class Bench:
    """A graph on a checkpointer of its own."""

    def __init__(self, folder: Path, url: str, stack: ExitStack, **policy: Any) -> None:
        self.url = url
        self.saver = stack.enter_context(saver(url, lambda it: gate(it, policy=Policy(**policy))))
        self.journal = Journal(folder)
        self.graph = build(self.saver, self.journal)

    def record(self, run: str) -> Any:
        with closing(open_store(self.url)) as store:
            return store.read(RunKey("langgraph", "", run)).record

    def with_node(self, node: Any) -> Any:
        """A graph that asks, and then runs `node`."""

        def ask(state: State) -> Update:
            return {"answer": interrupt("pay?")}

        builder = StateGraph(State)
        builder.add_node("ask", ask)
        builder.add_node("node", node)
        builder.add_edge(START, "ask")
        builder.add_edge("ask", "node")
        return builder.compile(checkpointer=self.saver)


@pytest.fixture
def bench(tmp_path: Path, url: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, url, stack)


def test_a_stream_that_is_closed_early_is_a_run_that_failed(bench: Bench) -> None:
    bench.graph.invoke({"run": "r"}, config("r"))
    stream = bench.graph.stream(YES, config("r"), durability="sync")
    assert "ask" in next(stream)
    with pytest.raises(InProgress):
        bench.graph.invoke(YES, config("r"))
    stream.close()
    assert bench.record("r").claim is None
    with pytest.raises(AlreadyConsumed) as refused:
        bench.graph.invoke(YES, config("r"))
    assert refused.value.failed
    assert bench.graph.invoke(None, config("r"))["answer"] == "yes"
    assert bench.journal.counts("r")["charge done"] == 1


def test_a_stream_that_nobody_reads_claims_nothing(bench: Bench) -> None:
    bench.graph.invoke({"run": "r"}, config("r"))
    stream = bench.graph.stream(YES, config("r"))
    assert bench.record("r").claim is None
    assert bench.graph.invoke(YES, config("r"))["answer"] == "yes"
    with pytest.raises(AlreadyConsumed):
        next(stream)


def test_ctrl_c_in_a_node_leaves_a_run_that_failed(bench: Bench) -> None:
    presses = iter([KeyboardInterrupt()])

    def node(state: State) -> Update:
        for press in presses:
            raise press
        return {}

    graph = bench.with_node(node)
    graph.invoke({"run": "r"}, config("r"))
    with pytest.raises(KeyboardInterrupt):
        graph.invoke(YES, config("r"))
    assert bench.record("r").claim is None
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, config("r"))
    assert refused.value.failed
    assert graph.invoke(None, config("r"))["answer"] == "yes"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_in_a_node_has_no_part_in_the_run(bench: Bench) -> None:
    found: dict[str, Any] = {}

    def in_the_child(claim: ActiveClaim, config: Any) -> str:
        if claim.provably_alive or len(HEARTBEAT):
            return "it would renew"
        drive(claim._keeper.dismiss(claim, Outcome("finished")), StorePort(claim._keeper.renewer))
        try:
            bench.saver.put_writes(config, [("answer", "no")], "task")
        except ClaimLost as error:
            return str(error)
        return "it would write"

    def node(state: State, config: RunnableConfig) -> Update:
        claim = claim_in_node()
        assert claim is not None
        before = bench.record("r")
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writes, in_the_child(claim, config).encode())
            finally:
                os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as pipe:
            found["child"] = pipe.read()
        os.waitpid(pid, 0)
        found["unchanged"] = bench.record("r") == before
        claim.check()
        return {}

    graph = bench.with_node(node)
    graph.invoke({"run": "r"}, config("r"))
    assert graph.invoke(YES, config("r"))["answer"] == "yes"
    assert "the process that this one was forked from. Nothing was written." in found["child"]
    assert found["unchanged"]
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config("r"))
