"""Whatever a flow may look like, gated it runs as it does ungated."""

# CrewAI is absent where types are checked, so its decorators and classes have none.
# pyright: reportCallIssue=false

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crewai.experimental import ConversationState
from crewai.flow.flow import Flow
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from crewai.flow.persistence.factory import set_flow_persistence_factory

from remit_gates.crewai import gate
from remit_gates.errors import AlreadyConsumed
from tests.adapters import flows
from tests.adapters.flows import Judging, Light, Looping, Plain, Steps, Twice, counting
from tests.adapters.recorded import Recorded
from tests.journal import Journal


Scenario = Callable[[Any], "list[Any]"]
"""What becomes of a flow on a persistence: the id of its run, and whatever it returned."""


def id_of(paused: Any) -> str:
    return str(paused.context.flow_id)


def in_turn(persistence: Any) -> list[Any]:
    """Two pauses, each answered by an instance of its own."""
    run = id_of(Twice(persistence=persistence).kickoff())
    first = Twice.from_pending(run, persistence).resume("yes")
    second = Twice.from_pending(run, persistence).resume("no")
    return [run, first.context.method_name, second]


def by_itself(persistence: Any) -> list[Any]:
    """Two pauses, both answered by one instance."""
    run = id_of(Twice(persistence=persistence).kickoff())
    flow = Twice.from_pending(run, persistence)
    return [run, flow.resume("yes").context.method_name, flow.resume("no")]


def in_a_loop(persistence: Any) -> list[Any]:
    """Four pauses at one method, now by the same instance and now by another."""
    run = id_of(Looping(persistence=persistence).kickoff())
    out: list[Any] = [run]
    flow = Looping.from_pending(run, persistence)
    for number, words in enumerate(("again", "again", "again", "done")):
        if number == 2:
            flow = Looping.from_pending(run, persistence)
        result = flow.resume(words)
        out.append(result if isinstance(result, str) else result.context.method_name)
    return out


def of_a_model(persistence: Any) -> list[Any]:
    """Feedback that a model sorts, and none at all."""
    run = id_of(Judging(persistence=persistence).kickoff())
    return [run, Judging.from_pending(run, persistence).resume()]


def with_fields(persistence: Any) -> list[Any]:
    """A state of fields, kept by the class."""
    cls = counting(persistence)
    flow = cls()
    run = id_of(flow.kickoff())
    resumed = cls.from_pending(run, persistence)
    result = resumed.resume("seven")
    again = cls()
    again.kickoff(inputs={"id": run})
    return [run, result, resumed.state.asked, resumed.state.answered, again.state.asked]


def with_a_dict(persistence: Any) -> list[Any]:
    """A state that is a dict."""
    flow = Plain(persistence=persistence)
    run = id_of(flow.kickoff(inputs={"topic": "gates"}))
    resumed = Plain.from_pending(run, persistence)
    return [run, resumed.resume("yes"), resumed.state["topic"]]


def by_method(persistence: Any) -> list[Any]:
    """Methods that are kept, each by itself."""
    cls = counting(persistence, by_method=True)
    run = id_of(cls(persistence=persistence).kickoff())
    return [run, cls.from_pending(run, persistence).resume("seven")]


def awaited(persistence: Any) -> list[Any]:
    """All of it on one event loop."""

    async def go() -> list[Any]:
        paused = await Twice(persistence=persistence).kickoff_async()
        run = id_of(paused)
        flow = Twice.from_pending(run, persistence)
        second = await flow.resume_async("yes")
        return [run, second.context.method_name, await flow.resume_async("no")]

    return asyncio.run(go())


def streamed(persistence: Any) -> list[Any]:
    """A flow that streams to its pause, and is resumed."""
    flow = Plain(persistence=persistence, stream=True)
    session = flow.kickoff()
    frames = [*session]
    assert frames
    run = id_of(session.result)
    return [run, Plain.from_pending(run, persistence).resume("yes")]


def declared(persistence: Any) -> list[Any]:
    """A flow that is written down, and no class."""
    definition = {
        "schema": "crewai.flow/v1",
        "name": "Declared",
        "methods": {
            "draft": {
                "start": True,
                "do": {"call": "code", "ref": "tests.adapters.declared:draft"},
                "human_feedback": {
                    "message": "publish?",
                    "provider": "tests.adapters.flows:Asks",
                },
            },
            "publish": {
                "listen": "draft",
                "do": {"call": "code", "ref": "tests.adapters.declared:publish"},
            },
        },
    }
    from crewai.flow.flow_definition import FlowDefinition

    made = FlowDefinition.from_declaration(contents=definition)
    run = id_of(Flow.from_declaration(contents=made, persistence=persistence).kickoff())
    flow = Flow.from_pending(run, persistence, definition=made)
    return [run, flow.resume("yes")]


def turned(persistence: Any) -> list[Any]:
    """A conversation: each turn is a kickoff of the same run."""

    @persist(persistence)
    class Talking(Light, Flow[ConversationState]):
        conversational = True

    run = "talk"
    out: list[Any] = [run]
    for _ in range(3):
        flow = Talking()
        out += [flow.handle_turn("hello", session_id=run), len(flow.state.messages)]
    assert out[-1] == 6
    return out


def started_anew(persistence: Any) -> list[Any]:
    """A run that is kicked off again by its id, and one that starts from its state."""
    cls = flows.stepping(persistence)
    run = "anew"
    ran = [cls().kickoff(inputs={"id": run}) for _ in range(2)]
    fork = cls()
    ran.append(fork.kickoff(restore_from_state_id=run))
    return [run, *ran, fork.state["ran"], fork.state["id"] != run]


SCENARIOS = (
    in_turn,
    by_itself,
    in_a_loop,
    of_a_model,
    with_fields,
    with_a_dict,
    by_method,
    awaited,
    streamed,
    declared,
    turned,
    started_anew,
)


@pytest.mark.parametrize("scope", ["resume", "run"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda found: found.__name__)
def test_gated_it_runs_as_it_does_ungated(
    scenario: Scenario, scope: Any, path: str, diary: Journal
) -> None:
    from remit_gates import Policy

    bare, inner = Recorded(f"{path}-bare"), Recorded(path)
    expected, *results = scenario(bare)
    run, *gated = scenario(gate(inner, policy=Policy(scope=scope)))

    assert gated == results
    if run != expected:
        assert diary.steps(run) == diary.steps(expected)
    # The gate looks once more at what waits, and asks for nothing else.
    asked = [call for call in inner.calls if call[0] != "load_pending"]
    assert asked == [call for call in bare.calls if call[0] != "load_pending"]


@contextlib.contextmanager
def default(factory: Any) -> Iterator[None]:
    set_flow_persistence_factory(factory)
    try:
        yield
    finally:
        set_flow_persistence_factory(None)


def test_the_default_persistence_can_be_a_gated_one(path: str, diary: Journal) -> None:
    with default(lambda: gate(SQLiteFlowPersistence(path))):
        run = id_of(Plain().kickoff())
        first, second = Plain.from_pending(run), Plain.from_pending(run)
        assert first.resume("yes") == "published:yes"
        with pytest.raises(AlreadyConsumed):
            second.resume("yes")
        with pytest.raises(AlreadyConsumed):
            Plain.from_pending(run)
    assert diary.steps(run) == ["draft", "publish:yes", "publish"]


def test_a_class_is_gated_by_its_decorator_alone(path: str, diary: Journal) -> None:
    cls = counting(gate(SQLiteFlowPersistence(path)))
    run = id_of(cls().kickoff())
    flows_open = [cls.from_pending(run, gate(SQLiteFlowPersistence(path))) for _ in range(2)]
    assert flows_open[0].resume("7") == "counted:7"
    with pytest.raises(AlreadyConsumed):
        flows_open[1].resume("7")


def test_a_flow_may_have_no_persistence_at_all(diary: Journal) -> None:
    flow = Steps()
    assert flow.kickoff() == "3"
    assert diary.steps(flow.flow_id) == ["first", "second", "third"]
