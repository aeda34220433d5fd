"""`on_conflict="wait"`: who waited gets what it would have got as the first, or is refused."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.types import Command

from remit_gates import Policy
from remit_gates._observe import Event, observed
from remit_gates._ops import Sleep
from remit_gates.errors import AlreadyConsumed, InProgress, ResumeRefused
from remit_gates.langgraph import Ticket
from tests.adapters.graphs import Hold, Journal, asks, beside, chain, does
from tests.adapters.racing import Background
from tests.adapters.ticketing import waiting
from tests.adapters.workers import Team
from tests.waiting import PATIENCE


WAIT = Policy(on_conflict="wait")

pytestmark = pytest.mark.kinds("memory", "sqlite-async", "postgres-pool", "redis", "foreign")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as a delivery waits."""
    event = threading.Event()
    sleep = Sleep.on

    def on(op: Sleep, port: Any) -> Any:
        event.set()
        return sleep(op, port)

    monkeypatch.setattr(Sleep, "on", on)
    return event


class Contest:
    """A winner that stands in a node, and a second delivery that waits for it."""

    def __init__(self, team: Team, builder: Any, policy: Policy = WAIT, **options: Any) -> None:
        self.first = team.worker().compile(builder, **options)
        self.second = team.worker(policy=policy).compile(builder, **options)
        self.config = team.thread()
        parked = self.first.invoke({}, self.config)
        self.ids = {found.value: found.id for found in parked.get("__interrupt__", ())}

    def run(self, won: Any, waits: Any, hold: Hold, slept: threading.Event) -> Any:
        """What the delivery `waits` comes to after it has waited for the answer `won`."""
        return self._run((Command(resume=won), self.config), (waits, self.config), hold, slept)

    def ticket(
        self, ticket: Ticket, won: Any, waits: Any, hold: Hold, slept: threading.Event
    ) -> Any:
        """The same, for two answers with one ticket; None at a breakpoint."""
        first, second = (
            (ticket.command() if ticket.interrupt_id is None else ticket.command(answer))
            for answer in (won, waits)
        )
        return self._run((first, ticket.config), (second, ticket.config), hold, slept)

    def _run(self, won: Any, waits: Any, hold: Hold, slept: threading.Event) -> Any:
        winner = Background(lambda: self.first.invoke(*won))
        hold.reached()
        waiter = Background(lambda: self.second.invoke(*waits))
        assert slept.wait(PATIENCE), "it never waited"
        hold.open()
        assert isinstance(winner.result(), dict)
        return waiter.result()


def finishing(journal: Journal, hold: Hold) -> Any:
    return chain(ask=asks(journal, "ask", "sure?", then=hold), after=does(journal, "after"))


def parking(journal: Journal, hold: Hold) -> Any:
    return chain(ask=asks(journal, "ask", "sure?", then=hold), next=asks(journal, "next", "next?"))


def test_the_same_answer_gets_the_winners_state(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, finishing(journal, hold))
    answer: Any = {contest.ids["sure?"]: "yes"}

    found = contest.run(answer, Command(resume=answer), hold, slept)

    assert found == {"log": ["ask=yes", "after="]}
    assert journal.lines == ["ask", "ask", "ask!", "after", "after!"]


def test_it_writes_nothing(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, finishing(journal, hold))
    answer: Any = {contest.ids["sure?"]: "yes"}
    records: list[Event] = []
    contest.run(answer, Command(resume=answer), hold, slept)
    before = contest.first.history(contest.config), team.pending(contest.first, contest.config)

    # Once more, with everything at rest: what waited has left what it found.
    with observed(records.append), pytest.raises(AlreadyConsumed):
        contest.second.invoke(Command(resume=answer), contest.config)
    after = contest.first.history(contest.config), team.pending(contest.first, contest.config)

    assert after == before
    assert [event.kind for event in records] == ["refused"]


def test_another_answer_is_refused(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, finishing(journal, hold))
    question = contest.ids["sure?"]

    found = contest.run({question: "yes"}, Command(resume={question: "no"}), hold, slept)

    assert isinstance(found, AlreadyConsumed)
    assert found.same_answer is False
    assert found.outcome is not None
    assert found.outcome.state == "finished"
    assert journal.count("ask!") == 1


def test_the_same_answer_to_a_run_that_parked_again_is_refused(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, parking(journal, hold))
    answer: Any = {contest.ids["sure?"]: "yes"}

    found = contest.run(answer, Command(resume=answer), hold, slept)

    assert isinstance(found, AlreadyConsumed)
    assert found.same_answer is True
    assert found.outcome is not None
    assert found.outcome.state == "parked"
    assert [ticket.value for ticket in found.tickets] == ["next?"]
    assert journal.count("next!") == 0

    # They are good tickets.
    (ticket,) = found.tickets
    assert contest.second.invoke(ticket.command("on"), ticket.config)["log"][-1] == "next=on"


def test_the_same_ticket_gets_the_winners_state(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, finishing(journal, hold))
    (ticket,) = waiting(contest.first, contest.config)

    found = contest.ticket(ticket, "yes", "yes", hold, slept)

    assert found == {"log": ["ask=yes", "after="]}
    assert journal.lines == ["ask", "ask", "ask!", "after", "after!"]


def test_the_same_ticket_on_a_run_that_parked_again_gets_the_next_ticket(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    """Though both questions have one name, before LangGraph 1.2.20."""
    inner = chain(ask=asks(journal, "ask", "sure?", then=hold), next=asks(journal, "next", "next?"))
    contest = Contest(team, chain(outer=inner.compile()))
    (ticket,) = waiting(contest.first, contest.config)

    found = contest.ticket(ticket, "yes", "yes", hold, slept)

    assert isinstance(found, AlreadyConsumed)
    assert found.same_answer is True
    assert found.tickets == waiting(contest.first, contest.config)
    assert [ticket.value for ticket in found.tickets] == ["next?"]
    assert journal.count("next!") == 0


def test_another_answer_with_the_ticket_gets_no_tickets(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, parking(journal, hold))
    (ticket,) = waiting(contest.first, contest.config)

    found = contest.ticket(ticket, "yes", "no", hold, slept)

    assert isinstance(found, AlreadyConsumed)
    assert (found.same_answer, found.tickets) == (False, ())


def steps(journal: Journal, hold: Hold) -> Any:
    return chain(a=does(journal, "a"), b=does(journal, "b", hold), c=does(journal, "c"))


def test_a_breakpoint_that_was_passed_meanwhile(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, steps(journal, hold), interrupt_before=["b"])
    (ticket,) = waiting(contest.first, contest.config)

    found = contest.ticket(ticket, None, None, hold, slept)

    assert found["log"] == ["a=", "b=", "c="]
    assert (journal.count("b"), journal.count("c")) == (1, 1)


def test_the_ticket_of_the_next_breakpoint(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, steps(journal, hold), interrupt_before=["b", "c"])
    (ticket,) = waiting(contest.first, contest.config)

    found = contest.ticket(ticket, None, None, hold, slept)

    assert isinstance(found, AlreadyConsumed)
    assert len(found.tickets) == 1
    assert found.tickets == waiting(contest.first, contest.config)
    assert (journal.count("b"), journal.count("c")) == (1, 0)


@pytest.mark.parametrize("kind", [finishing, parking])
def test_a_bare_answer_is_refused(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event, kind: Any
) -> None:
    contest = Contest(team, kind(journal, hold))

    found = contest.run("yes", Command(resume="yes"), hold, slept)

    assert isinstance(found, AlreadyConsumed)
    assert journal.count("ask!") == 1
    assert journal.count("next!") == 0


def test_a_continue_is_refused(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    contest = Contest(team, parking(journal, hold))

    found = contest.run("yes", None, hold, slept)

    assert isinstance(found, ResumeRefused)
    assert journal.count("next") == 1


def test_an_answer_to_another_open_question_is_served(
    team: Team, journal: Journal, hold: Hold, slept: threading.Event
) -> None:
    builder = beside(
        does(journal, "join"), a=asks(journal, "a", "a?", then=hold), b=asks(journal, "b", "b?")
    )
    contest = Contest(team, builder)

    found = contest.run(
        {contest.ids["a?"]: "A"}, Command(resume={contest.ids["b?"]: "B"}), hold, slept
    )

    assert sorted(found["log"]) == ["a=A", "b=B", "join="]
    assert [journal.count(f"{name}!") for name in ("a", "b", "join")] == [1, 1, 1]


def test_it_waits_only_so_long(team: Team, journal: Journal, hold: Hold) -> None:
    policy = Policy(on_conflict="wait", wait_timeout=0.05)
    contest = Contest(team, finishing(journal, hold), policy)
    winner = Background(lambda: contest.first.invoke(Command(resume="yes"), contest.config))
    hold.reached()

    with pytest.raises(InProgress, match="still being served"):
        contest.second.invoke(Command(resume="yes"), contest.config)
    hold.open()
    assert winner.result() == {"log": ["ask=yes", "after="]}


def test_two_new_inputs_run_one_after_the_other(team: Team, journal: Journal, hold: Hold) -> None:
    """With the scope of every run."""
    policy = Policy(scope="run")
    builder = chain(one=does(journal, "one", hold))
    first = team.worker(policy=policy).compile(builder)
    second = team.worker(policy=policy).compile(builder)
    config = team.thread()
    winner = Background(lambda: first.invoke({"log": ["first"]}, config))
    hold.reached()

    with pytest.raises(InProgress):
        second.invoke({"log": ["second"]}, config)
    hold.open()
    assert winner.result() == {"log": ["first", "one="]}
    assert second.invoke({"log": ["second"]}, config) == {
        "log": ["first", "one=", "second", "one="]
    }
    assert journal.count("one") == 2


def test_new_input_runs_beside_another_by_default(team: Team, journal: Journal, hold: Hold) -> None:
    first = team.worker().compile(chain(one=does(journal, "one", hold)))
    second = team.worker().compile(chain(one=does(journal, "one")))
    config = team.thread()
    winner = Background(lambda: first.invoke({"log": ["first"]}, config))
    hold.reached()

    assert isinstance(second.invoke({"log": ["second"]}, config), dict)
    hold.open()
    assert isinstance(winner.result(), dict)


def test_every_run_s_scope_keeps_an_answer_out(team: Team, journal: Journal, hold: Hold) -> None:
    policy = Policy(scope="run")
    builder = chain(one=does(journal, "one", hold), ask=asks(journal, "ask", "sure?"))
    first = team.worker(policy=policy).compile(builder)
    second = team.worker(policy=policy).compile(builder)
    config = team.thread()
    winner = Background(lambda: first.invoke({}, config))
    hold.reached()

    with pytest.raises(InProgress):
        second.invoke(Command(resume="yes"), config)
    hold.open()
    assert winner.result()["__interrupt__"]
    assert second.invoke(Command(resume="yes"), config) == {"log": ["one=", "ask=yes"]}
