"""What happens to a run in a thread: its stream is closed, its user presses Ctrl-C, its
process forks, its server is restarted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from remit_gates import (
    AlreadyConsumed,
    ClaimLost,
    InProgress,
    Policy,
    open_store,
)
from remit_gates._model import RunKey
from remit_gates.langgraph import claim_in_node, gate
from tests.races.graph import Journal, State, build, config
from tests.races.savers import saver


YES = Command(resume="yes")


class Bench:
    """A graph on a checkpointer of its own."""

    def __init__(self, folder: Path, url: str, stack: ExitStack, **policy: Any) -> None:
        self.url = url
        self.saver = stack.enter_context(saver(url, lambda it: gate(it, policy=Policy(**policy))))
        self.journal = Journal(folder)
        stack.callback(self.journal.close)
        self.graph = build(self.saver, self.journal)

    def record(self, run: str) -> Any:
        with closing(open_store(self.url)) as store:
            return store.read(RunKey("langgraph", "", run)).record

    def with_node(self, node: Any) -> Any:
        """A graph that asks, and then runs `node`."""

        def ask(state: State) -> State:
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

    def node(state: State) -> State:
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

    def node(state: State) -> State:
        claim = claim_in_node()
        assert claim is not None
        before = bench.record("r")
        pid = os.fork()
        if pid == 0:
            try:
                claim.check()
            except ClaimLost:
                # 3 when what the child thinks of the claim is right.
                os._exit(3 if not claim.provably_alive else 4)
            os._exit(5)
        found["child"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        found["unchanged"] = bench.record("r") == before
        claim.check()
        return {}

    graph = bench.with_node(node)
    graph.invoke({"run": "r"}, config("r"))
    assert graph.invoke(YES, config("r"))["answer"] == "yes"
    assert found == {"child": 3, "unchanged": True}
    with pytest.raises(AlreadyConsumed):
        graph.invoke(YES, config("r"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_leaves_the_run_as_its_parent_would_settles_nothing(
    tmp_path: Path, sqlite_url: str
) -> None:
    """The child goes on with the parent's stream, to the end of it: not one of its writes
    gets through, and the parent then ends its run as if there had been no child."""
    with ExitStack() as stack:
        bench = Bench(tmp_path, sqlite_url, stack)
        bench.graph.invoke({"run": "r"}, config("r"))
        stream = bench.graph.stream(YES, config("r"), durability="sync")
        assert "ask" in next(stream)
        before = bench.record("r")
        pid = os.fork()
        if pid == 0:
            try:
                stream.throw(RuntimeError("the child"))
            except (RuntimeError, ClaimLost):
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert bench.record("r") == before
        assert [list(update)[0] for update in stream] == ["charge", "notify"]
        assert bench.record("r").claim is None
        assert bench.journal.counts("r")["charge"] == 1
