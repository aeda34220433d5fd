"""Of several answers to one pause of a flow, one is served, and the rest run nothing."""

# CrewAI is absent where types are checked, so its decorators and classes have none.
# pyright: reportCallIssue=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crewai.events import crewai_event_bus
from crewai.events.types.flow_events import FlowStartedEvent
from crewai.flow.persistence import SQLiteFlowPersistence

from remit_gates.crewai import gate
from remit_gates.errors import AlreadyConsumed, InProgress, ResumeRefused
from tests.adapters.crews import Crew
from tests.adapters.flows import Judging, Plain, counting, parked
from tests.adapters.racing import outcome, race
from tests.garbage import uncollected
from tests.journal import Journal


RACERS = pytest.mark.parametrize("racers", [2, 4, 8])


def split(outcomes: list[Any]) -> tuple[list[Any], list[ResumeRefused]]:
    """What was served, and what was refused; anything else is a fault."""
    kinds = (InProgress, AlreadyConsumed)
    refused: list[ResumeRefused] = [found for found in outcomes if isinstance(found, kinds)]
    served = [found for found in outcomes if isinstance(found, str)]
    assert len(served) + len(refused) == len(outcomes), outcomes
    return served, refused


def answer(cls: Any, persistence: Any, run: str, words: str = "yes", **options: Any) -> Any:
    """Load a flow and resume it, as a web handler does."""
    return cls.from_pending(run, persistence).resume(words, **options)


@RACERS
@pytest.mark.parametrize("loaded", ["before", "as it comes"])
@pytest.mark.parametrize("shared", [True, False], ids=["one persistence", "one each"])
def test_one_of_many_threads_is_served(
    racers: int, loaded: str, shared: bool, path: str, diary: Journal
) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    own = [persistence if shared else gate(SQLiteFlowPersistence(path)) for _ in range(racers)]
    run = parked(Plain, persistence)
    if loaded == "before":
        calls = [partial(Plain.from_pending(run, each).resume, "yes") for each in own]
    else:
        calls = [partial(answer, Plain, each, run) for each in own]

    served, refused = split(race(*calls))

    assert served == ["published:yes"]
    assert len(refused) == racers - 1
    assert diary.steps(run) == ["draft", "publish:yes", "publish"]


@RACERS
def test_one_of_many_threads_on_one_instance_is_served(
    racers: int, path: str, diary: Journal
) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    flow = Plain.from_pending(run, persistence)

    served, refused = split(race(*[partial(flow.resume, "yes")] * racers))

    assert served == ["published:yes"]
    assert len(refused) == racers - 1
    assert diary.steps(run) == ["draft", "publish:yes", "publish"]


@RACERS
@pytest.mark.parametrize("loaded", ["before", "as it comes", "one instance"])
def test_one_of_many_tasks_is_served(racers: int, loaded: str, path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = asyncio.run(_parked_there(persistence))

    async def each(flow: Any) -> Any:
        try:
            flow = flow or Plain.from_pending(run, persistence)
            return await flow.resume_async("yes")
        except Exception as error:
            return error

    async def go() -> list[Any]:
        one = Plain.from_pending(run, persistence)
        make: dict[str, Callable[[], Any]] = {
            "before": lambda: Plain.from_pending(run, persistence),
            "as it comes": lambda: None,
            "one instance": lambda: one,
        }
        flows = [make[loaded]() for _ in range(racers)]
        return await asyncio.gather(*map(each, flows))

    served, refused = split(asyncio.run(go()))

    assert served == ["published:yes"]
    assert len(refused) == racers - 1
    assert diary.steps(run) == ["draft", "publish:yes", "publish"]


async def _parked_there(persistence: Any) -> str:
    paused = await Plain(persistence=persistence).kickoff_async()
    return str(paused.context.flow_id)


@RACERS
@pytest.mark.parametrize("loaded", ["before", "as it comes"])
def test_one_of_many_processes_is_served(
    racers: int, loaded: str, path: str, diary: Journal, crews: Crew
) -> None:
    run = parked(Plain, gate(SQLiteFlowPersistence(path)))
    crews.open(path, racers)

    verdicts = crews.race(run, "yes", racers, early=loaded == "before")

    assert [verdict for verdict in verdicts if verdict == "published:yes"] == ["published:yes"]
    others = {verdict for verdict in verdicts if verdict != "published:yes"}
    assert others <= {"InProgress", "AlreadyConsumed"}
    assert len(verdicts) == racers
    assert diary.steps(run) == ["draft", "publish:yes", "publish"]


def test_a_loser_starts_no_flow_calls_no_model_and_writes_no_state(
    path: str, diary: Journal
) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    cls = counting(persistence)
    run = str(cls().kickoff().context.flow_id)
    judged = parked(Judging, persistence)
    started: list[str] = []

    @crewai_event_bus.on(FlowStartedEvent)
    def _(source: Any, event: FlowStartedEvent) -> None:
        started.append(source.flow_id)

    try:
        calls = [
            partial(answer, flow, persistence, name, "approved")
            for flow, name in ((cls, run), (Judging, judged))
            for _ in range(4)
        ]
        outcomes = race(*calls)
        crewai_event_bus.flush()
    finally:
        crewai_event_bus.off(FlowStartedEvent, _)

    assert [len(part) for part in split(outcomes)] == [2, 6]
    assert sorted(started) == sorted([run, judged])
    assert diary.steps(judged) == ["draft", "model", "publish"]
    assert diary.steps(run) == ["ask", "answer"]
    # One each for: the question, the resume, the listener.
    assert states(path, run) == ["ask", "ask", "answer"]


def states(path: str, run: str) -> list[str]:
    """The methods after which CrewAI wrote a state of `run`."""
    connection = sqlite3.connect(path)
    try:
        sql = "SELECT method_name FROM flow_states WHERE flow_uuid = ? ORDER BY id"
        return [name for (name,) in connection.execute(sql, (run,))]
    finally:
        connection.close()


def test_approve_and_reject_make_one_decision(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Judging, persistence)
    words = {"ann": "approved", "bob": "rejected"}

    outcomes = race(
        *[
            partial(answer, Judging, persistence, run, said, remit_actor=who)
            for who, said in words.items()
        ]
    )

    served, (refused,) = split(outcomes)
    winner = "ann" if isinstance(outcomes[0], str) else "bob"
    done = "publish" if winner == "ann" else "discard"
    assert diary.steps(run) == ["draft", "model", done]
    assert served == [f"{done}ed"]
    assert refused.consumption is not None
    assert refused.consumption.actor == winner
    assert f" {winner} " in str(refused)
    # And afterwards, when all is over.
    for who, said in words.items():
        with pytest.raises(AlreadyConsumed, match=f"answered by {winner} at") as late:
            answer(Judging, persistence, run, said, remit_actor=who)
        assert late.value.outcome is not None
        assert late.value.outcome.state == "finished"


def test_the_other_caller_is_told_whether_it_wanted_the_same(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Judging, persistence)
    first, same, other = (Judging.from_pending(run, persistence) for _ in range(3))
    first.resume("approved", remit_actor="ann")

    refusals = [
        outcome(partial(flow.resume, said))
        for flow, said in ((same, "approved"), (other, "rejected"))
    ]

    assert [type(error).__name__ for error in refusals] == ["AlreadyConsumed"] * 2
    assert [error.same_answer for error in refusals] == [True, False]
    assert all(isinstance(error, ValueError) for error in refusals)


def test_ungated_every_racer_is_served(path: str, diary: Journal) -> None:
    """What the gate is for; and that the tests above can fail."""
    persistence = SQLiteFlowPersistence(path)
    run = parked(Plain, persistence)
    flows = [Plain.from_pending(run, persistence) for _ in range(4)]

    assert race(*[partial(flow.resume, "yes") for flow in flows]) == ["published:yes"] * 4

    assert diary.steps(run).count("publish") == 4


def test_runs_do_not_wait_for_each_other(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    runs = [parked(Plain, persistence) for _ in range(4)]

    served, refused = split(race(*[partial(answer, Plain, persistence, run) for run in runs]))

    assert (served, refused) == (["published:yes"] * 4, [])


def test_two_namespaces_are_two_gates(path: str, tmp_path: Path, diary: Journal) -> None:
    first, second = (gate(SQLiteFlowPersistence(path), namespace=name) for name in "ab")
    run = str(uuid.uuid4())
    Plain(persistence=first).kickoff(inputs={"id": run})
    answer(Plain, first, run)
    Plain(persistence=second).kickoff(inputs={"id": run})
    assert answer(Plain, second, run) == "published:yes"


def test_one_that_is_told_late_leaves_nothing_to_be_collected(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    emptied = Plain.from_pending(run, persistence)
    assert emptied.resume("yes") == "published:yes"

    async def again() -> None:
        # Within, since what leaves `asyncio.run` by an error is kept by the task that it ended.
        with pytest.raises(AlreadyConsumed):
            await emptied.resume_async("yes")

    with uncollected(AlreadyConsumed) as left:
        with pytest.raises(AlreadyConsumed):
            Plain.from_pending(run, persistence)
        asyncio.run(again())
        assert left() == 0
