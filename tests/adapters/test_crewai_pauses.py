"""One pause is one question: what was answered, gone on from or replaced is not answered
again, and looking at it costs nothing."""

# CrewAI is absent where types are checked, so its decorators and classes have none.
# pyright: reportCallIssue=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

import pytest
from crewai.flow.persistence import SQLiteFlowPersistence

from remit_gates import Policy, current_claim
from remit_gates.crewai import gate, ticket
from remit_gates.errors import (
    AlreadyConsumed,
    InProgress,
    NotParked,
    StaleTicket,
    Superseded,
    UsageError,
)
from tests.adapters.flows import Light, Looping, Plain, Twice, counting, kept, parked
from tests.adapters.racing import Background, outcome
from tests.adapters.recorded import Recorded
from tests.journal import Journal


def test_looking_consumes_nothing_and_asks_the_store_nothing(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    flow = Plain.from_pending(run, persistence)
    for _ in range(5):
        flow = Plain.from_pending(run, persistence)
        assert flow.pending_feedback.method_name == "draft"
        assert persistence.load_pending_feedback(run) is not None
    assert kept(path, run).version is None
    assert flow.resume("yes") == "published:yes"


def test_looking_is_free_while_the_run_is_in_progress(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    diary.hold(run, "publish")
    winner = Background(partial(Plain.from_pending(run, persistence).resume, "yes"))
    diary.await_step(run, "publish")
    before = kept(path, run).version

    assert persistence.load_pending_feedback(run) is None
    assert persistence.load_state(run) is not None
    with pytest.raises(AlreadyConsumed) as late:
        Plain.from_pending(run, persistence)

    assert late.value.outcome is None
    assert kept(path, run).version == before
    diary.let_go(run, "publish")
    assert winner.result() == "published:yes"


def test_a_consumed_pause_is_told_by_whom_and_when(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    Plain.from_pending(run, persistence).resume("yes", remit_actor="ann", remit_delivery="m1")

    with pytest.raises(ValueError, match="answered by ann at 20") as late:
        Plain.from_pending(run, persistence)

    assert isinstance(late.value, AlreadyConsumed)
    consumed = late.value.consumption
    assert consumed is not None
    assert (consumed.actor, consumed.delivery) == ("ann", "m1")
    assert consumed.since > 0
    assert consumed.pause.startswith("draft@")


def test_a_flow_that_never_waited_is_crewais_to_refuse(path: str) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    with pytest.raises(ValueError, match="No pending feedback found") as unknown:
        Plain.from_pending("nobody", persistence)
    assert not isinstance(unknown.value, AlreadyConsumed)
    with pytest.raises(ValueError, match="No pending feedback context"):
        Plain(persistence=persistence).resume("yes")


def test_an_instance_that_just_paused_is_crewais_to_refuse(path: str, diary: Journal) -> None:
    """Its pause is open: another instance may answer it."""
    persistence = gate(SQLiteFlowPersistence(path))
    flow = Plain(persistence=persistence)
    run = str(flow.kickoff().context.flow_id)
    with pytest.raises(ValueError, match="No pending feedback context"):
        flow.resume("yes")
    assert Plain.from_pending(run, persistence).resume("yes") == "published:yes"


def test_a_loser_deletes_no_later_pause(path: str, diary: Journal) -> None:
    """Stock, its late `clear_pending_feedback` does: the row goes by the flow's id alone."""
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Twice, persistence)
    winner, loser = (Twice.from_pending(run, persistence) for _ in range(2))
    assert winner.resume("yes").context.method_name == "wire"

    with pytest.raises(AlreadyConsumed):
        loser.resume("yes")

    assert Twice.from_pending(run, persistence).resume("no") == "paid:no"
    assert diary.steps(run) == ["refund", "wire:yes", "pay:no"]


def test_ungated_a_loser_does_delete_it(path: str, diary: Journal) -> None:
    persistence = SQLiteFlowPersistence(path)
    run = parked(Twice, persistence)
    winner, loser = (Twice.from_pending(run, persistence) for _ in range(2))
    winner.resume("yes")

    # It is cut off where it pauses again, as a worker that dies there would be.
    inner = Recorded(path)
    inner.before("save_pending", partial(pytest.fail, "here it dies"))
    loser.persistence = inner
    with pytest.raises(pytest.fail.Exception):
        loser.resume("yes")

    with pytest.raises(ValueError, match="No pending feedback found"):
        Twice.from_pending(run, persistence)


def test_a_losers_stale_state_does_not_become_the_latest(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    cls = counting(persistence)
    run = str(cls().kickoff().context.flow_id)
    winner, loser = (cls.from_pending(run, persistence) for _ in range(2))
    winner.resume("seven")

    with pytest.raises(AlreadyConsumed):
        loser.resume("eight")

    latest = persistence.load_state(run)
    assert latest is not None
    assert latest["answered"] == "seven"


def test_a_pause_that_a_kickoff_replaced_is_refused(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    early = Plain.from_pending(run, persistence)
    Plain(persistence=persistence).kickoff(inputs={"id": run})

    with pytest.raises(Superseded):
        early.resume("yes")

    assert Plain.from_pending(run, persistence).resume("no") == "published:no"
    assert diary.steps(run) == ["draft", "draft", "publish:no", "publish"]


def test_a_pause_that_somebody_gave_up_by_hand_is_refused(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    early = Plain.from_pending(run, persistence)
    persistence.clear_pending_feedback(run)

    with pytest.raises(NotParked):
        early.resume("yes")
    assert diary.steps(run) == ["draft"]


def test_an_old_round_of_a_loop_is_refused(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Looping, persistence)
    early = Looping.from_pending(run, persistence)
    Looping.from_pending(run, persistence).resume("again")
    with pytest.raises(AlreadyConsumed):
        early.resume("done")
    assert Looping.from_pending(run, persistence).resume("done") == "finished"


def test_a_late_bare_copy_that_loads_anew_answers_the_next_question(
    path: str, diary: Journal
) -> None:
    """Nothing tells it from a legitimate answer; a delivery id or a ticket does."""
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Twice, persistence)
    for _ in range(2):
        flow = Twice.from_pending(run, persistence)
        flow.resume("yes")
    assert diary.steps(run) == ["refund", "wire:yes", "pay:yes"]


def test_a_late_copy_with_a_delivery_id_is_refused(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Twice, persistence)
    Twice.from_pending(run, persistence).resume("yes", remit_delivery="m1")
    with pytest.raises(AlreadyConsumed):
        Twice.from_pending(run, persistence).resume("yes", remit_delivery="m1")
    assert Twice.from_pending(run, persistence).resume("no", remit_delivery="m2") == "paid:no"


def test_a_late_copy_with_a_ticket_is_refused(path: str, diary: Journal) -> None:
    """The first approval, delivered again, does not wire $10,000."""
    persistence = gate(SQLiteFlowPersistence(path), policy=Policy(answers="bound"))
    paused = Twice(persistence=persistence).kickoff()
    run = str(paused.context.flow_id)
    shown = ticket(paused)
    assert shown == ticket(Twice.from_pending(run, persistence))
    again = Twice.from_pending(run, persistence).resume(
        "yes", remit_ticket=shown, remit_actor="ann"
    )

    with pytest.raises(AlreadyConsumed, match="by ann") as late:
        Twice.from_pending(run, persistence).resume("yes", remit_ticket=shown)

    assert late.value.same_answer
    assert diary.steps(run) == ["refund", "wire:yes"]
    flow = Twice.from_pending(run, persistence)
    assert flow.resume("no", remit_ticket=ticket(again)) == "paid:no"


def test_a_ticket_for_a_pause_that_was_replaced_is_stale(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    paused = Plain(persistence=persistence).kickoff()
    run = str(paused.context.flow_id)
    early = Plain.from_pending(run, persistence)
    replaced = Plain(persistence=persistence).kickoff(inputs={"id": run})
    flow = Plain.from_pending(run, persistence)
    with pytest.raises(StaleTicket):
        flow.resume("yes", remit_ticket=ticket(paused))
    # The ticket is good, but this instance still stands at the earlier question.
    with pytest.raises(Superseded):
        early.resume("yes", remit_ticket=ticket(replaced))
    assert flow.resume("yes", remit_ticket=ticket(replaced)) == "published:yes"


def test_a_bare_answer_is_refused_where_answers_must_be_bound(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path), policy=Policy(answers="bound"))
    run = parked(Plain, persistence)
    flow = Plain.from_pending(run, persistence)
    with pytest.raises(UsageError, match="remit_ticket"):
        flow.resume("yes")
    assert kept(path, run).version is None
    assert flow.resume("yes", remit_ticket=ticket(flow)) == "published:yes"


@pytest.mark.parametrize("broken", ["", "?", "é", 7])
def test_what_is_no_ticket_of_the_flow_is_refused(broken: Any, path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    flow, other = (Plain.from_pending(parked(Plain, persistence), persistence) for _ in range(2))
    for text in (broken, ticket(flow)[:-1]):
        with pytest.raises(UsageError, match="not a ticket"):
            flow.resume("yes", remit_ticket=text)
    with pytest.raises(UsageError, match="another flow"):
        flow.resume("yes", remit_ticket=ticket(other))
    for neither in (Plain(persistence=persistence), Plain(), None):
        with pytest.raises(UsageError, match="does not"):
            ticket(neither)
    assert flow.resume("yes", remit_ticket=ticket(flow)) == "published:yes"


def test_a_ticket_can_be_signed(path: str, diary: Journal) -> None:
    signing = gate(SQLiteFlowPersistence(path), secret=["new", "old"])
    before = gate(SQLiteFlowPersistence(path), secret="old")
    plain = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, signing)
    flow = Plain.from_pending(run, signing)
    for forged in (
        Plain.from_pending(run, plain),
        Plain.from_pending(run, gate(SQLiteFlowPersistence(path), secret="another")),
    ):
        with pytest.raises(UsageError, match="not a ticket"):
            flow.resume("yes", remit_ticket=ticket(forged))
    shown = ticket(Plain.from_pending(run, before))
    assert flow.resume("yes", remit_ticket=shown) == "published:yes"


def test_the_claim_is_at_hand_in_a_listener(path: str, diary: Journal) -> None:
    from crewai.flow.flow import Flow, listen, start
    from crewai.flow.human_feedback import human_feedback

    from tests.adapters.flows import asks

    seen: list[Any] = []

    class Keyed(Light, Flow):
        @start()
        @human_feedback(message="?", provider=asks)
        def ask(self):  # type: ignore[no-untyped-def]
            seen.append(current_claim())

        @listen(ask)
        def sync(self, result):  # type: ignore[no-untyped-def]
            seen.append(current_claim())

        @listen(sync)
        async def awaited(self, result):  # type: ignore[no-untyped-def]
            seen.append(current_claim())

    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Keyed, persistence)
    Keyed.from_pending(run, persistence).resume("yes", remit_actor="ann", remit_delivery="m1")
    before, *claims = seen
    assert before is None
    assert len({claim.idempotency_key for claim in claims}) == 1
    assert [(claim.actor, claim.delivery) for claim in claims] == [("ann", "m1")] * 2
    assert current_claim() is None


def test_a_delivery_waits_where_the_policy_says_so(path: str, diary: Journal) -> None:
    policy = Policy(on_conflict="wait")
    persistence = gate(SQLiteFlowPersistence(path), policy=policy)
    run = parked(Plain, persistence)
    winner, loser = (Plain.from_pending(run, persistence) for _ in range(2))
    diary.hold(run, "publish")
    first = Background(partial(winner.resume, "yes"))
    diary.await_step(run, "publish")
    second = Background(partial(loser.resume, "yes"))
    diary.let_go(run, "publish")
    assert first.result() == "published:yes"
    late = second.result()
    assert isinstance(late, AlreadyConsumed)
    assert late.same_answer
    assert late.outcome is not None


def test_while_it_is_served_another_is_told_so(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    winner, loser = (Plain.from_pending(run, persistence) for _ in range(2))
    diary.hold(run, "publish")
    first = Background(partial(winner.resume, "yes", remit_actor="ann"))
    diary.await_step(run, "publish")
    refused = outcome(partial(loser.resume, "no"))
    diary.let_go(run, "publish")
    assert first.result() == "published:yes"
    assert isinstance(refused, InProgress)
    assert refused.retry_after is not None
    assert 0 < refused.retry_after <= 30
    assert refused.same_answer is False
    assert " for ann " in str(refused)


def test_a_persistence_that_forgets_when_it_asked_is_found_out(path: str, diary: Journal) -> None:
    """Each time that it is read its pause has another name, so nothing is served."""

    class Forgetful(SQLiteFlowPersistence):
        def load_pending_feedback(self, flow_uuid: str) -> Any:
            from datetime import datetime, timezone

            state, context = super().load_pending_feedback(flow_uuid)
            context.requested_at = datetime.now(timezone.utc)
            return state, context

    persistence = gate(Forgetful(path))
    flow = Plain.from_pending(parked(Plain, persistence), persistence)
    with pytest.raises(UsageError, match="requested_at"):
        flow.resume("yes")


def test_no_answer_is_written_anywhere_by_the_gate(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    flow, late = (Plain.from_pending(run, persistence) for _ in range(2))
    flow.resume("sesame")
    refused = outcome(partial(late.resume, "sesame"))
    connection = sqlite3.connect(path)
    rows = str(connection.execute("SELECT * FROM remit_gates").fetchall())
    connection.close()
    assert run in rows
    assert "sesame" not in rows + str(refused)
