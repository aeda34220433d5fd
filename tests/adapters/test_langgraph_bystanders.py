"""What was not passed through `gate()` behaves as before, in the process of a gate too."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from remit_gates.langgraph import gate
from tests.adapters.graphs import Journal, approval, asks, beside, chain, does
from tests.adapters.workers import Team, on


PROGRAM = """
import sys
from tests.adapters.test_langgraph_bystanders import recorded
if sys.argv[1] == "hooked":
    from langgraph.checkpoint.memory import InMemorySaver
    from remit_gates.langgraph import gate
    gate(InMemorySaver())
for line in recorded():
    print(line)
"""


class Recording(InMemorySaver):
    """Notes every call with all that is the same from run to run."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def _note(self, name: str, config: Any, *more: Any) -> None:
        conf = config["configurable"]
        keys = sorted(key for key in conf)
        self.calls.append(f"{name} {keys} {more}")

    def get_tuple(self, config: Any) -> Any:
        self._note("get_tuple", config)
        return super().get_tuple(config)

    def list(self, config: Any, **options: Any) -> Any:
        self._note("list", config, sorted(options))
        return super().list(config, **options)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        values = sorted(checkpoint["channel_values"])
        self._note("put", config, values, sorted(metadata), metadata.get("source"))
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        found = [(channel, getattr(value, "__len__", lambda: 0)()) for channel, value in writes]
        self._note("put_writes", config, found, task_path)
        super().put_writes(config, writes, task_id, task_path)


def recorded() -> list[str]:
    """Every call that an ungated saver gets in a run with all that a run may have.

    Writes of one superstep are put in the background, so within one step their order is
    nobody's promise.
    """
    journal = Journal()
    saver = Recording()
    builder = chain(one=asks(journal, "one", "1?", "2?"), two=does(journal, "two"))
    inner = chain(outer=builder.compile(), three=does(journal, "three"))
    out: list[str] = []
    for graph in (
        builder.compile(checkpointer=saver, interrupt_before=["two"]),
        inner.compile(checkpointer=saver),
    ):
        config: Any = on(f"t{len(out)}", mine=1, remit_delivery="untouched")
        inputs: list[Any] = [
            {},
            Command(resume="a"),
            None,
            Command(resume="b"),
            None,
            Command(resume="c"),
        ]
        for given in inputs:
            out.append(repr(sorted(graph.invoke(given, config))))
            out.extend(sorted(saver.calls))
            saver.calls.clear()
        graph.get_state(config)
        list(graph.get_state_history(config))
        graph.update_state(config, {"log": ["x"]})
        out.extend(saver.calls)
        saver.calls.clear()
    return out


def test_an_ungated_saver_gets_the_same_calls() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, how],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for how in ("bare", "hooked")
    ]

    assert outputs[0].count("\n") > 60
    assert outputs[0] == outputs[1]
    assert "__pregel_remit" not in outputs[1]


@pytest.mark.kinds("memory", "sqlite-async", "postgres", "redis")
def test_an_ungated_graph_is_as_free_as_ever(team: Team, journal: Journal) -> None:
    """It runs a duplicate, and answers with an id that nobody asked for."""
    gate(InMemorySaver())
    graph, config = team.bare().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    answer: Any = Command(resume="yes")

    assert graph.invoke(answer, config) == {"log": ["ask=yes", "after="]}
    assert graph.invoke(answer, config) == {"log": ["ask=yes", "after="]}
    graph.invoke(Command(resume={"0" * 32: "x"}), config)


@pytest.mark.kinds("memory", "sqlite-async")
def test_a_graph_without_a_saver_runs(team: Team, journal: Journal) -> None:
    gate(InMemorySaver())
    builder = beside(does(journal, "join"), a=does(journal, "a"), b=does(journal, "b"))
    graph = builder.compile()

    assert sorted(graph.invoke({})["log"]) == ["a=", "b=", "join="]


@pytest.mark.kinds("memory", "sqlite", "postgres", "redis")
def test_a_gated_graph_goes_on_with_what_was_parked_ungated(team: Team, journal: Journal) -> None:
    """A gate is put in front of threads that are there already."""
    bare, gated = team.bare().compile(approval(journal)), team.worker().compile(approval(journal))
    config = team.thread()
    bare.invoke({}, config)

    assert gated.invoke(Command(resume="yes"), config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == 1


@pytest.mark.kinds("memory", "sqlite", "postgres", "redis")
def test_a_gated_continue_uses_the_answer_of_an_ungated_run_that_failed(
    team: Team, journal: Journal
) -> None:
    from tests.adapters.graphs import Boom, failing

    builder = chain(ask=asks(journal, "ask", "sure?", then=failing()))
    bare, gated = team.bare().compile(builder), team.worker().compile(builder)
    config = team.thread()
    bare.invoke({}, config)
    with pytest.raises(Boom):
        bare.invoke(Command(resume="yes"), config)

    assert gated.invoke(None, config) == {"log": ["ask=yes"]}
