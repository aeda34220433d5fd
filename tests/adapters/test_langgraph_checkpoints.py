"""An explicit checkpoint is an ordinary resume at the head, and a branch behind it."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed, InProgress, Superseded
from tests.adapters.graphs import Hold, Journal, approval, asks, chain, does
from tests.adapters.racing import Background, outcome
from tests.adapters.workers import Team, on


YES: Any = Command(resume="yes")
NO: Any = Command(resume="no")


def at(graph: Any, config: Any, question: str) -> str:
    """Id of the newest checkpoint that waits for an answer to `question`."""
    found = (
        state.config["configurable"]["checkpoint_id"]
        for state in graph.history(config)
        if any(asked.value == question for task in state.tasks for asked in task.interrupts)
    )
    return str(next(found))


def test_the_head_by_its_id_is_an_ordinary_resume(team: Team, journal: Journal) -> None:
    first, second = (team.worker().compile(approval(journal)) for _ in range(2))
    config = team.thread()
    first.invoke({}, config)
    here = on(config, checkpoint_id=at(first, config, "sure?"))

    assert first.invoke(YES, here) == {"log": ["ask=yes", "after="]}
    with pytest.raises(Superseded):
        second.invoke(YES, here)
    with pytest.raises(AlreadyConsumed):
        second.invoke(YES, config)
    assert journal.count("ask!") == journal.count("after!") == 1


def test_racers_that_name_the_head(team: Team, journal: Journal, hold: Hold) -> None:
    first, second = (team.worker().compile(approval(journal, hold)) for _ in range(2))
    config = team.thread()
    first.invoke({}, config)
    here = on(config, checkpoint_id=at(first, config, "sure?"))
    winner = Background(lambda: first.invoke(YES, here))
    hold.reached()

    assert isinstance(outcome(lambda: second.invoke(YES, here)), InProgress)
    assert isinstance(outcome(lambda: second.invoke(YES, config)), InProgress)
    hold.open()
    assert winner.result() == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == journal.count("after!") == 1


def test_an_answer_to_an_older_checkpoint_is_superseded(team: Team, journal: Journal) -> None:
    builder = chain(one=asks(journal, "one", "1?"), two=asks(journal, "two", "2?"))
    graph, config = team.worker().compile(builder), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    old = on(config, checkpoint_id=at(graph, config, "1?"))
    graph.invoke(Command(resume="a"), config)
    before = list(journal.lines)

    late: list[Any] = [NO, Command(resume={asked.id: "no"})]
    for given in late:
        with pytest.raises(Superseded) as refused:
            graph.invoke(given, old)
        assert "remit_fork" in str(refused.value)

    assert journal.lines == before
    assert graph.invoke(Command(resume="b"), config) == {"log": ["one=a", "two=b"]}


@pytest.mark.parametrize("by_id", [False, True])
def test_a_fork_has_its_own_branch_and_its_own_answer(
    team: Team, journal: Journal, by_id: bool
) -> None:
    """Where LangGraph would take the answer that is on record."""
    builder = chain(one=asks(journal, "one", "1?"), two=asks(journal, "two", "2?"))
    graph, config = team.worker().compile(builder), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    old = at(graph, config, "1?")
    graph.invoke(Command(resume="a"), config)
    given: Any = Command(resume={asked.id: "z"} if by_id else "z")

    fork = on(config, checkpoint_id=old, remit_fork=True)
    parked = graph.invoke(given, fork)
    assert parked["log"] == ["one=z"]
    assert [found.value for found in parked["__interrupt__"]] == ["2?"]

    # The branch is the thread's head now, and gated like any other.
    assert graph.invoke(Command(resume="y"), config) == {"log": ["one=z", "two=y"]}
    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume="y"), config)
    assert journal.count("two!") == 1


def test_every_fork_from_one_checkpoint_is_its_own(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    old = at(graph, config, "sure?")
    graph.invoke(YES, config)

    for answer in "xyz":
        fork = on(config, checkpoint_id=old, remit_fork=True)
        found = graph.invoke(Command(resume=answer), fork)
        assert found == {"log": [f"ask={answer}", "after="]}
    assert journal.count("ask!") == 4


def test_a_replay_without_an_answer_is_served_alone(
    team: Team, journal: Journal, hold: Hold
) -> None:
    builder = chain(
        one=does(journal, "one"), two=does(journal, "two"), three=asks(journal, "three", "3?")
    )
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    first.invoke({}, config)
    old = next(
        state.config["configurable"]["checkpoint_id"]
        for state in first.history(config)
        if state.next == ("two",)
    )
    held = chain(
        one=does(journal, "one"), two=does(journal, "two", hold), three=asks(journal, "three", "3?")
    )
    slow = team.worker().compile(held)
    replay = Background(lambda: slow.invoke(None, on(config, checkpoint_id=old)))
    hold.reached()

    assert isinstance(outcome(lambda: second.invoke(YES, config)), InProgress)
    assert isinstance(
        outcome(lambda: second.invoke(None, on(config, checkpoint_id=old))), InProgress
    )
    hold.open()
    assert replay.result()["__interrupt__"]
    assert journal.count("two!") == 2
    assert second.invoke(YES, config)["log"] == ["one=", "two=", "three=yes"]
    assert journal.count("three!") == 1


def test_a_replay_asks_the_old_question_again(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    old = at(graph, config, "sure?")
    graph.invoke(YES, config)

    # On LangGraph 1.0 a replay takes the recorded answer; a fork asks, on every release.
    found = graph.invoke(None, on(config, checkpoint_id=old))
    if "__interrupt__" in found:
        assert graph.invoke(NO, config) == {"log": ["ask=no", "after="]}
        with pytest.raises(AlreadyConsumed):
            graph.invoke(NO, config)
    else:
        assert found == {"log": ["ask=yes", "after="]}
