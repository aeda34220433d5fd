"""What a caller tells the gate, nobody else hears: not the checkpoint, a stream or a trace."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed
from tests.adapters.graphs import Boom, Journal, asks, chain, does, failing
from tests.adapters.workers import Graph, Team, on


SECRET = "delivery-0451"
OPTIONS = {"remit_delivery": SECRET, "remit_actor": "actor-0451", "remit_fork": False}

MODES = ["values", "updates", "custom", "messages", "debug", "tasks", "checkpoints"]

SOME = pytest.mark.kinds("memory", "memory-async", "sqlite", "postgres-async-pool", "foreign")


class Trace(BaseCallbackHandler):
    """Keeps all that callbacks are told."""

    raise_error = True

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def _hear(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append((args, kwargs))

    on_chain_start = on_chain_end = on_chain_error = on_custom_event = _hear


def clean(found: Any) -> bool:
    """Whether nothing of the options or of the gate's own keys is in `found`, but the token
    that a checkpoint was written under."""
    text = repr(found).replace("'remit_token'", "")
    return not any(word in text for word in (SECRET, "actor-0451", "remit"))


@SOME
def test_options_reach_no_checkpoint_and_no_state(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    told = on(config, **OPTIONS)
    graph.invoke({}, told)
    graph.invoke(Command(resume="yes"), told)

    assert clean(team.pending(graph, config))
    assert clean(graph.history(config))
    assert clean(graph.state(config))
    for state in graph.history(config):
        assert {key for key in state.metadata or {} if "remit" in key} <= {"remit_token"}


@SOME
def test_options_reach_no_stream(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    told = on(config, **OPTIONS)

    inputs: list[Any] = [{}, Command(resume="yes")]
    for given in inputs:
        for item in graph.stream(given, told, stream_mode=MODES, subgraphs=True):
            assert clean(item), item
    assert journal.count("after!") == 1


@SOME
def test_options_reach_no_trace(team: Team, journal: Journal) -> None:
    trace = Trace()
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after"))
    graph, config = team.worker().compile(builder), team.thread()
    told: Any = {**on(config, **OPTIONS), "callbacks": [trace], "metadata": {"mine": 1}}
    graph.invoke({}, told)
    graph.invoke(Command(resume="yes"), told)

    assert len(trace.heard) >= 8
    for args, kwargs in trace.heard:
        assert clean([kwargs.get("metadata"), kwargs.get("tags"), args])
    assert any(kwargs.get("metadata", {}).get("mine") == 1 for _, kwargs in trace.heard)


@SOME
def test_a_node_sees_its_own_config_without_the_options(team: Team, journal: Journal) -> None:
    seen: list[Any] = []

    def node(state: Any, config: RunnableConfig) -> Any:
        seen.append(config)
        return {"log": ["seen"]}

    graph = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"), node=node))
    config = team.thread(mine=1)
    told = on(config, **OPTIONS, mine=1)
    graph.invoke({}, told)
    graph.invoke(Command(resume="yes"), told)

    (found,) = seen
    assert not [key for key in found["configurable"] if key.startswith("remit")]
    assert not [key for key in found["metadata"] if "remit" in key]
    assert found["configurable"]["mine"] == 1


@SOME
def test_the_callers_config_stays_as_it_is(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"))
    graph, config = team.worker().compile(builder), team.thread()
    told = on(config, **OPTIONS)
    before = {"configurable": dict(told["configurable"])}
    graph.invoke({}, told)
    graph.invoke(Command(resume="yes"), told)

    assert told == before


@SOME
def test_options_given_with_the_graph(team: Team, journal: Journal) -> None:
    """`with_config` carries them as a call does, and tells nobody else either."""
    trace = Trace()
    builder = chain(ask=asks(journal, "ask", "1?", "2?"))
    worker = team.worker()
    graph, config = worker.compile(builder), team.thread()
    told = Graph(
        worker, graph.compiled.with_config({**on(config, **OPTIONS), "callbacks": [trace]})
    )
    told.invoke({}, None)
    told.invoke(Command(resume="a"), None)

    with pytest.raises(AlreadyConsumed) as refused:
        told.invoke(Command(resume="b"), None)
    assert refused.value.consumption is not None
    assert refused.value.consumption.delivery == SECRET
    assert clean(graph.history(config))
    assert len(trace.heard) >= 4
    for args, kwargs in trace.heard:
        # A refusal itself may say who was first.
        heard = [arg for arg in args if not isinstance(arg, AlreadyConsumed)]
        assert clean([kwargs.get("metadata"), kwargs.get("tags"), heard])


@SOME
def test_an_option_of_the_call_beats_one_of_the_graph(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "1?", "2?"))
    worker = team.worker()
    graph, config = worker.compile(builder), team.thread()
    told = Graph(worker, graph.compiled.with_config(configurable={"remit_delivery": SECRET}))
    told.invoke({}, config)
    told.invoke(Command(resume="a"), on(config, remit_delivery="m"))

    assert told.invoke(Command(resume="b"), on(config, remit_delivery="n")) == {"log": ["ask=a+b"]}


@SOME
def test_a_failed_run_tells_nothing_either(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?", then=failing()))
    graph, config = team.worker().compile(builder), team.thread()
    told = on(config, **OPTIONS)
    graph.invoke({}, told)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="yes"), told)

    assert clean(team.pending(graph, config))
    assert clean(graph.history(config))


def test_signatures_are_the_savers_own(team: Team) -> None:
    """LangGraph looks whether `put_writes` takes a task path."""
    gated = team.worker().saver
    bare = type(gated).__mro__[1]
    for name in ("get_tuple", "aget_tuple", "put", "aput", "put_writes", "aput_writes"):
        assert inspect.signature(getattr(type(gated), name)) == inspect.signature(
            getattr(bare, name)
        )


@pytest.mark.kinds("memory-async", "sqlite-async", "foreign-async")
def test_options_reach_no_event(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"))), team.thread()
    told = on(config, **OPTIONS)

    async def collect(given: Any) -> list[Any]:
        events = graph.compiled.astream_events(given, told, version="v2")
        return [event async for event in events]

    assert graph.worker.loop is not None
    inputs: list[Any] = [{}, Command(resume="yes")]
    for given in inputs:
        events = graph.worker.loop.run(collect(given))
        assert len(events) >= 4
        assert clean(events)
    assert journal.count("ask!") == 1
