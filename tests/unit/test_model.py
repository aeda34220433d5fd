"""The words of the protocol as values, and what a record can be asked."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from remit_gates._model import (
    KEEP,
    Answer,
    Consumption,
    Delivery,
    Intent,
    Outcome,
    Phase,
    Reason,
    Record,
    RunKey,
    Snapshot,
)
from tests.unit.worlds import Ledger, claim, holder


def consumption(pause: str, generation: int = 0, token: int = 1) -> Consumption:
    return Consumption(
        pause=pause,
        generation=generation,
        token=token,
        attempt=1,
        phase=Phase.RUNNING,
        digest=None,
        delivery=None,
        actor=None,
        holder=holder("a"),
        since=0.0,
    )


def test_the_sets_are_closed_and_written_in_lower_case() -> None:
    assert [member.value for member in Reason] == [
        "in_progress",
        "consumed",
        "failed",
        "abandoned",
        "stale_ticket",
        "not_parked",
        "superseded",
    ]
    assert [member.value for member in Intent] == ["answer", "continue", "start", "fork"]
    assert [member.value for member in Phase] == ["running", "settled", "failed"]


def test_a_run_is_named_by_framework_namespace_and_run() -> None:
    assert str(RunKey("langgraph", "shop", "order-17")) == "langgraph:shop/order-17"
    assert RunKey("a", "", "2") < RunKey("a", "b", "1") < RunKey("b", "", "1")


@pytest.mark.parametrize(
    "value",
    [
        RunKey("f", "n", "r"),
        holder("a"),
        Outcome("finished"),
        Answer("p1"),
        Record(),
        Snapshot(None, Record(), None, 0.0),
        consumption("p1"),
        Delivery(Intent.ANSWER, holder("a")),
    ],
)
def test_every_word_is_a_value(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert hash(value) == hash(pickle.loads(pickle.dumps(value)))
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        value.nothing_of_the_kind = 1  # type: ignore[attr-defined]


def test_nothing_is_known_of_a_new_run() -> None:
    record = Record()
    assert record.consumption("p1") is None
    assert record.closed("p1") is None
    assert record.by_token(0) is None
    assert record.by_delivery("m1") is None
    assert record.unfinished == ()


def test_the_latest_consumption_of_a_pause_is_the_one_that_counts(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1")
    ledger.ends("parked", "p1")
    ledger.answer("p1", id="m2")
    latest = ledger.record.consumptions[-1]
    assert ledger.record.consumption("p1") == latest
    assert ledger.record.closed("p1") == latest


def test_a_reopened_pause_is_known_and_not_closed(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("parked", "p1")
    assert ledger.record.consumption("p1") is not None
    assert ledger.record.closed("p1") is None


def test_a_token_finds_the_first_that_its_claim_worked_on() -> None:
    entries = (consumption("p1", token=1), consumption("p2", token=2), consumption("p3", token=2))
    record = Record(consumptions=entries)
    assert record.by_token(2) == entries[1]
    assert record.by_token(3) is None


def test_a_delivery_id_finds_the_latest_consumption(ledger: Ledger) -> None:
    ledger.answer("p1", "p2", id="m1")
    found = ledger.record.by_delivery("m1")
    assert found is not None
    assert found.pause == "p2"
    assert ledger.record.by_delivery("m2") is None


def test_a_consumption_takes_the_place_of_its_own_earlier_attempt() -> None:
    record = Record(consumptions=(consumption("p1"), consumption("p2"), consumption("p1", 1)))
    after = record.with_consumption(consumption("p1", token=9))
    assert [(entry.pause, entry.generation, entry.token) for entry in after.consumptions] == [
        ("p2", 0, 1),
        ("p1", 1, 1),
        ("p1", 0, 9),
    ]


def test_the_oldest_consumption_goes_first() -> None:
    record = Record()
    for number in range(KEEP + 2):
        record = record.with_consumption(consumption(f"p{number}", token=number))
    assert len(record.consumptions) == KEEP
    assert record.consumption("p1") is None
    assert record.consumption("p2") is not None


def test_what_is_unfinished_is_the_active_claims_while_there_is_one(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    assert [entry.pause for entry in ledger.record.unfinished] == ["p1"]
    ledger.answer("p2")
    assert [entry.pause for entry in ledger.record.unfinished] == ["p2"]
    ledger.ends("finished")
    assert ledger.record.unfinished == ()


def test_the_last_claim_is_the_active_one_or_else_the_last_that_was_served(
    ledger: Ledger,
) -> None:
    assert ledger.record.last == 0
    first = claim(ledger.answer("p1")).token
    assert (ledger.record.last, ledger.record.served) == (first, 0)
    ledger.ends("failed")
    assert ledger.record.last == first
    second = claim(ledger.start()).token
    assert (ledger.record.last, ledger.record.served) == (second, first)


def test_what_is_settled_or_reopened_is_not_unfinished(ledger: Ledger) -> None:
    ledger.answer("p1", "p2", "p3")
    ledger.ends("failed")
    ledger.releases(pause="p1")
    assert [entry.pause for entry in ledger.record.unfinished] == ["p2", "p3"]
    ledger.go_on()
    assert [entry.pause for entry in ledger.record.unfinished] == ["p2", "p3"]
    ledger.ends("finished")
    assert ledger.record.unfinished == ()


def test_ids_are_spent_once_and_the_oldest_is_forgotten_first() -> None:
    record = Record().with_spent("m1", None, "m2").with_spent("m1")
    assert record.spent == ("m1", "m2")
    assert record.with_spent("m2", None) is record
    many = record.with_spent(*(f"n{number}" for number in range(KEEP - 1)))
    assert len(many.spent) == KEEP
    assert many.spent[:2] == ("m2", "n0")


def test_what_one_claim_works_on_is_kept_however_much_it_is() -> None:
    record = Record(consumptions=(consumption("old", token=1),))
    for number in range(KEEP + 6):
        record = record.with_consumption(consumption(f"p{number}", token=2))
    assert len(record.consumptions) == KEEP + 6
    assert record.consumption("old") is None
    assert record.consumption("p0") is not None
    assert len(record.with_consumption(consumption("next", token=3)).consumptions) == KEEP
