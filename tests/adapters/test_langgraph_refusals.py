"""A delivery that answers nothing that waits is refused, and says what it was too late for."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import Policy
from remit_gates.errors import AlreadyConsumed, NotParked, UsageError
from tests.adapters.graphs import Journal, approval, asks, beside, chain, does
from tests.adapters.workers import Team, on


YES: Any = Command(resume="yes")


def test_an_answer_to_an_unknown_thread_starts_nothing(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()

    with pytest.raises(NotParked):
        graph.invoke(YES, config)
    with pytest.raises(NotParked):
        graph.invoke(Command(resume={"0" * 32: "yes"}), config)

    assert journal.lines == []
    assert graph.history(config) == []
    assert graph.invoke({}, config)["__interrupt__"]


def test_an_answer_when_nothing_ever_waited(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(chain(one=does(journal, "one"))), team.thread()
    graph.invoke({}, config)
    before = graph.history(config)

    with pytest.raises(NotParked):
        graph.invoke(YES, config)

    assert graph.history(config) == before
    assert journal.count("one") == 1


def test_an_answer_by_an_id_that_never_waited(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)

    with pytest.raises(NotParked) as refused:
        graph.invoke(Command(resume={"0" * 32: "yes"}), config)

    assert refused.value.pauses == ()
    assert journal.lines == ["ask"]
    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}


def test_an_answer_by_id_to_a_consumed_question(team: Team, journal: Journal) -> None:
    builder = chain(one=asks(journal, "one", "1?"), two=asks(journal, "two", "2?"))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread()
    asked = first.invoke({}, config)["__interrupt__"][0]
    first.invoke(Command(resume={asked.id: "a"}), config)

    with pytest.raises(AlreadyConsumed) as refused:
        second.invoke(Command(resume={asked.id: "a"}), config)
    with pytest.raises(AlreadyConsumed) as other:
        second.invoke(Command(resume={asked.id: "z"}), config)

    assert refused.value.same_answer is True
    assert other.value.same_answer is False
    assert refused.value.outcome is not None
    assert refused.value.outcome.state == "parked"
    assert journal.lines == ["one", "one", "one!", "two"]
    assert second.invoke(Command(resume="b"), config) == {"log": ["one=a", "two=b"]}


def test_one_known_and_one_unknown_id_are_refused_together(team: Team, journal: Journal) -> None:
    builder = beside(does(journal, "join"), a=asks(journal, "a", "a?"), b=asks(journal, "b", "b?"))
    graph, config = team.worker().compile(builder), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    before = list(journal.lines)

    with pytest.raises(NotParked):
        graph.invoke(Command(resume={asked.id: "A", "0" * 32: "B"}), config)

    assert journal.lines == before
    assert len(graph.waiting(config)) == 2


def test_an_empty_map_asks_again(team: Team, journal: Journal) -> None:
    """As LangGraph has it: it answers nothing."""
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)

    assert graph.invoke(Command(resume={}), config)["__interrupt__"]
    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}
    assert journal.count("ask!") == 1


def two(journal: Journal) -> Any:
    """Two questions of one node, of which a late answer to the first must not reach the
    second."""
    return chain(ask=asks(journal, "ask", "refund 10?", "wire 10000?"))


def test_a_late_bare_duplicate_is_served_by_default(team: Team, journal: Journal) -> None:
    """Nothing tells it from a legitimate answer to what waits now."""
    graph, config = team.worker().compile(two(journal)), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)

    assert graph.invoke(YES, config) == {"log": ["ask=yes+yes"]}


def test_a_late_duplicate_with_a_delivery_id_is_refused(team: Team, journal: Journal) -> None:
    graph, config = team.worker().compile(two(journal)), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, on(config, remit_delivery="message-1", remit_actor="ann"))

    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(YES, on(config, remit_delivery="message-1"))

    assert refused.value.consumption is not None
    assert refused.value.consumption.actor == "ann"
    assert refused.value.consumption.delivery == "message-1"
    assert "ann" in str(refused.value)
    assert journal.count("ask!") == 0
    assert graph.invoke(YES, on(config, remit_delivery="message-2")) == {"log": ["ask=yes+yes"]}


def test_a_delivery_id_answers_no_other_thread_s_question_twice(
    team: Team, journal: Journal
) -> None:
    """It is the run's own: the same id on another run is another delivery."""
    graph = team.worker().compile(approval(journal))
    for config in (team.thread(), team.thread()):
        graph.invoke({}, config)
        assert graph.invoke(YES, on(config, remit_delivery="m"))["log"] == ["ask=yes", "after="]


def test_a_delivery_id_that_was_used_for_a_parallel_question_is_refused(
    team: Team, journal: Journal
) -> None:
    builder = beside(does(journal, "join"), a=asks(journal, "a", "a?"), b=asks(journal, "b", "b?"))
    graph, config = team.worker().compile(builder), team.thread()
    a, b = sorted(graph.invoke({}, config)["__interrupt__"], key=lambda found: str(found.value))
    graph.invoke(Command(resume={a.id: "A"}), on(config, remit_delivery="m"))

    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume={b.id: "B"}), on(config, remit_delivery="m"))

    assert journal.count("b!") == 0


def test_a_late_duplicate_by_id_does_not_answer_the_next_question(
    team: Team, journal: Journal
) -> None:
    """Where one id names both (before 1.2.20), this is what a delivery id is for; the next
    node's question always has another id."""
    builder = chain(one=asks(journal, "one", "1?"), two=asks(journal, "two", "2?"))
    graph, config = team.worker().compile(builder), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    graph.invoke(Command(resume={asked.id: "a"}), config)

    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume={asked.id: "a"}), config)
    assert journal.count("two!") == 0


@pytest.mark.ordinal
def test_a_late_duplicate_by_id_does_not_answer_the_same_node_s_next_question(
    team: Team, journal: Journal
) -> None:
    graph, config = team.worker().compile(two(journal)), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    graph.invoke(Command(resume={asked.id: "yes"}), config)

    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(Command(resume={asked.id: "yes"}), config)

    assert refused.value.same_answer is True
    assert journal.count("ask!") == 0


def test_bound_answers_only(team: Team, journal: Journal) -> None:
    graph = team.worker(policy=Policy(answers="bound")).compile(approval(journal))
    config = team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]

    with pytest.raises(UsageError, match="does not name the pause"):
        graph.invoke(YES, config)
    with pytest.raises(UsageError, match="does not name the pause"):
        graph.invoke(YES, on(config, remit_delivery="m"))

    assert journal.lines == ["ask"]
    assert graph.invoke(Command(resume={asked.id: "yes"}), config)["log"] == ["ask=yes", "after="]


def test_a_refusal_leaves_no_trace(team: Team, journal: Journal) -> None:
    """Not in the checkpoint, not in the pending writes, not in what is shown."""
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)
    before = team.pending(graph, config)

    late: list[Any] = [YES, Command(resume="no"), Command(resume={"0" * 32: "no"})]
    for given in late:
        with pytest.raises((AlreadyConsumed, NotParked)):
            graph.invoke(given, config)

    assert team.pending(graph, config) == before
    assert journal.count("ask!") == 1
