"""What an audit finds: every attempt, its people and its end, and nothing that is not known."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from remit_gates import (
    AlreadyConsumed,
    AsyncGate,
    Attempt,
    Gate,
    Policy,
    Release,
    RunKey,
    history,
)
from remit_gates._claim import ActiveClaim
from remit_gates._codec import decode, encode
from remit_gates._history import attempts
from remit_gates._model import KEEP_EARLIER, Continuation, Intent, Snapshot
from remit_gates.stores.memory import MemoryStore
from tests.unit.worlds import Ledger, claim, holder


def told(ledger: Ledger, *, dead: bool = False) -> tuple[Attempt, ...]:
    """The history after a trip through the written form."""
    record = decode(encode(ledger.record))
    return attempts(Snapshot(1, record, ledger.lease_left, ledger.now), dead=dead)


def states(ledger: Ledger) -> list[tuple[str, int, str]]:
    return [(entry.pause, entry.attempt, entry.state) for entry in told(ledger)]


def test_nothing_is_told_of_a_run_that_nobody_knows(ledger: Ledger) -> None:
    assert told(ledger) == ()


def test_an_answer_is_told_with_its_people_and_times(ledger: Ledger) -> None:
    got = claim(ledger.answer("p1", id="m1", actor="Ann"))
    ledger.ends("parked", "p2")
    assert told(ledger) == (
        Attempt(
            pause="p1",
            attempt=1,
            token=got.token,
            state="parked",
            actor="Ann",
            delivery="m1",
            digest="yes",
            answer=None,
            answered=1001.0,
            continued=None,
            holder=holder("a"),
            since=1001.0,
            until=1001.5,
            position="c1",
            error=None,
            release=None,
        ),
    )


def test_pauses_are_told_in_the_order_in_which_they_were_answered(ledger: Ledger) -> None:
    ledger.answer("p2")
    ledger.ends("parked", "p1")
    ledger.answer("p1", "p3")
    ledger.ends("finished")
    assert states(ledger) == [("p2", 1, "parked"), ("p1", 1, "finished"), ("p3", 1, "finished")]


def test_an_attempt_runs_while_its_lease_lives_and_its_holder_is_not_known_to_be_dead(
    ledger: Ledger,
) -> None:
    ledger.answer("p1")
    assert [entry.state for entry in told(ledger)] == ["running"]
    assert [entry.state for entry in told(ledger, dead=True)] == ["abandoned"]
    ledger.dies()
    assert [(entry.state, entry.until) for entry in told(ledger)] == [("abandoned", None)]


def test_another_answer_after_a_release_leaves_the_first_one_and_the_release_known(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", actor="Ann", digest="d1", id="m1")
    ledger.ends("failed")
    ended = ledger.now + 0.5
    ledger.now += 60
    ledger.releases(actor="ops", detail="typed wrong")
    released = ledger.now
    ledger.answer("p1", by="b", actor="Bob", digest="d2", id="m2")
    ledger.ends("finished")
    first, second = told(ledger)
    assert (first.attempt, first.state, first.actor, first.digest) == (1, "failed", "Ann", "d1")
    assert (first.until, first.position) == (ended, "c1")
    assert first.release == Release(released, "ops", "typed wrong")
    assert (second.attempt, second.state, second.actor) == (2, "finished", "Bob")
    assert (second.delivery, second.release, second.continued) == ("m2", None, None)


def test_the_error_of_a_released_failure_stays_known() -> None:
    gate = Gate(MemoryStore())
    with pytest.raises(LookupError), gate.passage("r", "p"):
        raise LookupError("not to be told")
    before = gate.history("r")[0]
    gate.release("r", actor="ops", reason="mended")
    after = gate.history("r")[0]
    assert (before.error, before.release) == ("LookupError", None)
    assert after.release is not None
    assert after == dataclasses.replace(before, release=after.release)


def test_an_abandoned_attempt_has_no_end_though_it_was_released(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.releases(detail="host is gone")
    (entry,) = told(ledger)
    assert (entry.state, entry.until, entry.error) == ("abandoned", None, None)
    assert entry.release == Release(ledger.now, None, "host is gone")


def test_whoever_goes_on_is_known_beside_whoever_answered(ledger: Ledger) -> None:
    ledger.answer("p1", by="a", actor="Ann", id="m1")
    ledger.ends("failed")
    ledger.go_on(by="b", actor="ops", id="m2")
    ledger.ends("finished")
    first, second = told(ledger)
    assert (first.state, first.holder, first.continued) == ("failed", holder("a"), None)
    assert (second.attempt, second.state, second.holder) == (2, "finished", holder("b"))
    assert (second.actor, second.delivery, second.answered) == ("Ann", "m1", first.answered)
    assert second.continued == Continuation(second.since, "m2", "ops")
    assert second.since > first.since


def test_a_takeover_leaves_the_dead_attempt_known() -> None:
    ledger = Ledger(Policy(on_abandoned="serve"))
    ledger.answer("p1", actor="Ann")
    ledger.dies()
    ledger.answer("p1", by="b", actor="Bob")
    assert [(entry.actor, entry.state) for entry in told(ledger)] == [
        ("Ann", "abandoned"),
        ("Bob", "running"),
    ]


def test_a_release_of_a_claim_without_answers_is_told(ledger: Ledger) -> None:
    ledger.deliver(Intent.START, actor="Ann")
    ledger.dies()
    ledger.releases(actor="ops", detail="stuck")
    (entry,) = told(ledger)
    assert (entry.pause, entry.state, entry.actor) == ("", "abandoned", "Ann")
    assert entry.release == Release(ledger.now, "ops", "stuck")


def test_what_was_withdrawn_was_no_attempt(ledger: Ledger) -> None:
    from remit_gates._decide import withdraw

    ledger.answer("p1")
    ledger.ends("failed")
    before = told(ledger)
    got = claim(ledger.go_on())
    after = withdraw(ledger.record, got.token, ledger.before)
    assert after is not None
    ledger.record, ledger.lease_left = after, None
    assert told(ledger) == before


def test_earlier_attempts_are_bounded_and_a_gap_shows(ledger: Ledger) -> None:
    ledger.answer("p1")
    for _ in range(KEEP_EARLIER + 5):
        ledger.ends("failed")
        ledger.go_on()
    numbers = [entry.attempt for entry in told(ledger)]
    assert numbers == list(range(6, KEEP_EARLIER + 7))


def test_no_decision_looks_at_earlier_attempts() -> None:
    """The same deliveries, with the memory of attempts and without."""
    with_memory, without = Ledger(), Ledger()
    for ledger in (with_memory, without):
        ledger.answer("p1", "p2", id="m1")
        for step in ("failed", "release", "answer", "dies", "go on", "parked"):
            if step in ("failed", "parked"):
                ledger.ends(step, "p1")
            elif step == "release":
                ledger.releases(pause="p1")
            elif step == "answer":
                ledger.answer("p1", by="b", id="m2")
            elif step == "dies":
                ledger.dies()
            else:
                ledger.go_on(by="c")
            if ledger is without:
                ledger.record = dataclasses.replace(ledger.record, earlier=())
    assert with_memory.record.earlier
    assert dataclasses.replace(with_memory.record, earlier=()) == without.record


def test_without_the_policy_nothing_of_an_answer_is_stored() -> None:
    store = MemoryStore()
    with Gate(store).passage("r", "p", "a secret"):
        pass
    (entry,) = history(store, "r")
    assert entry.digest is not None
    assert entry.answer is None
    assert "a secret" not in encode(store.read(RunKey("gate", "", "r")).record)


def test_the_policy_keeps_the_answer_and_a_refusal_does_not_carry_it() -> None:
    store = MemoryStore()
    gate = Gate(store, policy=Policy(record_answers=True))
    with gate.passage("r", "p", {"approved": True}, actor="Ann"):
        pass
    (entry,) = gate.history("r")
    assert (entry.actor, entry.answer) == ("Ann", '{"approved": true}')
    assert "approved" not in repr(entry)
    with pytest.raises(AlreadyConsumed) as refused, gate.passage("r", "p", {"approved": True}):
        pass
    assert refused.value.consumption is not None
    assert refused.value.consumption.answer is None
    assert "approved" not in str(vars(refused.value))


def test_an_answer_that_is_gone_on_with_is_kept_once_and_told_each_time() -> None:
    store = MemoryStore()
    gate = Gate(store, policy=Policy(record_answers=True))
    with pytest.raises(LookupError), gate.passage("r", "p", "yes"):
        raise LookupError
    with pytest.raises(LookupError), gate.passage("r"):
        raise LookupError
    gate.release("r")
    with gate.passage("r", "p", "no"):
        pass
    assert [(entry.attempt, entry.answer) for entry in gate.history("r")] == [
        (1, '"yes"'),
        (2, '"yes"'),
        (3, '"no"'),
    ]
    assert encode(store.read(RunKey("gate", "", "r")).record).count("yes") == 1


def test_a_history_is_read_in_both_colours_and_from_outside() -> None:
    store = MemoryStore()
    gate = Gate(store, namespace="shop", framework="flow")
    with gate.passage("r", "p"):
        (running,) = history(store, "r", framework="flow", namespace="shop")
    assert running.state == "running"
    assert history(store, "r") == ()

    async def read() -> tuple[Attempt, ...]:
        return await AsyncGate(store, namespace="shop", framework="flow").history("r")

    assert asyncio.run(read()) == gate.history("r")
    assert [entry.state for entry in gate.history("r")] == ["finished"]


def test_a_holder_that_is_known_to_be_dead_is_not_told_as_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(MemoryStore())
    held: list[ActiveClaim] = []
    with gate.passage("r", "p") as got:
        held.append(got)
        monkeypatch.setattr("remit_gates._port.known_dead", lambda holder: True)
        assert [entry.state for entry in gate.history("r")] == ["abandoned"]


def test_an_attempt_is_a_value(ledger: Ledger) -> None:
    ledger.answer("p1")
    (entry,) = told(ledger)
    assert hash(entry) == hash(told(ledger)[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.state = "finished"  # type: ignore[misc]
