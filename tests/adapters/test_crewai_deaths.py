"""A holder that is killed before CrewAI gave its pause up has changed nothing; one that is
killed afterwards leaves a doubt, which the policy settles."""

from __future__ import annotations

import pytest
from crewai.flow.persistence import SQLiteFlowPersistence

from remit_gates import Abandoned, AlreadyConsumed, Policy
from remit_gates.crewai import gate, release
from tests.adapters.crews import Crew
from tests.adapters.flows import Judging, Plain, Twice, kept, parked
from tests.journal import Journal
from tests.waiting import until


SHORT = 1.0
"""A lease for those who must see one run out."""


def test_killed_before_the_commit_another_is_served(path: str, diary: Journal, crews: Crew) -> None:
    """Whatever the policy: the pause is still there, so nothing has run."""
    run = parked(Judging, gate(SQLiteFlowPersistence(path)))
    winner, first, second = crews.open(path, 3)
    diary.hold(run, "model")
    winner.tell("answer", "Judging", run, "approved")
    diary.await_step(run, "model")
    assert first.ask("answer", "Judging", run, "rejected") == "InProgress"
    winner.kill()
    diary.let_go(run, "model")
    killed = kept(path, run).record.claim
    assert killed is not None

    for worker in (first, second):
        worker.tell("answer", "Judging", run, "rejected")
    kinds = {first.result(), second.result()}

    assert "discarded" in kinds
    assert kinds <= {"discarded", "InProgress", "AlreadyConsumed"}
    assert len(kinds) == 2
    assert diary.steps(run) == ["draft", "model", "model", "discard"]
    record = kept(path, run).record
    assert record.served > killed.token
    assert record.consumptions[-1].attempt == 2


def test_killed_on_another_host_its_lease_tells(path: str, diary: Journal, crews: Crew) -> None:
    run = parked(Judging, gate(SQLiteFlowPersistence(path)))
    winner, other = crews.open(path, 2, lease=SHORT)
    winner.ask("open", path, host="elsewhere", lease=SHORT)
    diary.hold(run, "model")
    winner.tell("answer", "Judging", run, "approved")
    diary.await_step(run, "model")
    winner.kill()
    assert other.ask("answer", "Judging", run, "rejected") == "InProgress"
    diary.let_go(run, "model")
    until(lambda: other.ask("answer", "Judging", run, "rejected") == "discarded")
    assert diary.steps(run) == ["draft", "model", "model", "discard"]


def test_killed_after_the_commit_it_is_in_doubt(path: str, diary: Journal, crews: Crew) -> None:
    run = parked(Plain, gate(SQLiteFlowPersistence(path)))
    winner, other, third = crews.open(path, 3)
    assert {worker.ask("load", "Plain", run) for worker in (other, third)} == {"loaded"}
    diary.hold(run, "publish")
    winner.tell("answer", "Plain", run, "yes")
    diary.await_step(run, "publish")
    winner.kill()
    diary.let_go(run, "publish")

    persistence = gate(SQLiteFlowPersistence(path))
    assert other.ask("resume", "no") == "Abandoned"
    with pytest.raises(Abandoned, match="kickoff") as late:
        Plain.from_pending(run, persistence)
    assert isinstance(late.value, ValueError)
    assert diary.steps(run).count("publish") == 1

    # Released, only the claim is open again: whoever holds an instance may go on.
    assert release(persistence, run, actor="bob")
    with pytest.raises(ValueError, match="CrewAI's own row of the pause is gone"):
        Plain.from_pending(run, persistence)
    assert other.ask("resume", "no") == "published:no"
    assert third.ask("resume", "no") == "AlreadyConsumed"
    assert diary.steps(run).count("publish") == 2


def test_if_the_policy_says_so_an_open_instance_takes_over(
    path: str, diary: Journal, crews: Crew
) -> None:
    run = parked(Plain, gate(SQLiteFlowPersistence(path)))
    winner, other, third = crews.open(path, 3, on_abandoned="serve")
    for worker in (other, third):
        worker.ask("load", "Plain", run)
    diary.hold(run, "publish")
    winner.tell("answer", "Plain", run, "yes")
    diary.await_step(run, "publish")
    winner.kill()
    diary.let_go(run, "publish")

    # Who has no instance cannot have one any more.
    with pytest.raises(AlreadyConsumed):
        Plain.from_pending(
            run, gate(SQLiteFlowPersistence(path), policy=Policy(on_abandoned="serve"))
        )
    for worker in (other, third):
        worker.tell("resume", "yes")
    kinds = sorted((other.result(), third.result()))
    assert kinds[1] == "published:yes"
    assert kinds[0] in ("InProgress", "AlreadyConsumed")
    assert diary.steps(run).count("publish") == 2


def test_killed_where_it_paused_again_the_next_question_is_open(
    path: str, diary: Journal, crews: Crew
) -> None:
    """It had done its work; only its end was not written down."""
    run = parked(Twice, gate(SQLiteFlowPersistence(path)))
    winner, other = crews.open(path, 2)
    diary.hold(run, "paused again")
    winner.tell("stand_after_the_pause", run, "yes")
    diary.await_step(run, "paused again")
    assert other.ask("answer", "Twice", run, "no") == "InProgress"
    winner.kill()
    diary.let_go(run, "paused again")
    assert other.ask("answer", "Twice", run, "no") == "paid:no"
    assert diary.steps(run) == ["refund", "wire:yes", "paused again", "pay:no"]


def test_a_holder_that_stood_still_past_its_lease_runs_no_listener(
    path: str, diary: Journal, crews: Crew
) -> None:
    run = parked(Judging, gate(SQLiteFlowPersistence(path)))
    stale, other = crews.open(path, 2, lease=SHORT)
    diary.hold(run, "model")
    stale.tell("answer", "Judging", run, "approved")
    diary.await_step(run, "model")
    stale.stop()
    try:
        diary.let_go(run, "model")
        until(lambda: other.ask("answer", "Judging", run, "rejected") == "discarded")
    finally:
        stale.go()
    assert stale.result() == "ClaimLost"
    assert diary.steps(run).count("publish") == 0
    assert diary.steps(run).count("discard") == 1
