"""A record is written in one way only, and read back as it was."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_gates._codec import FORMAT, decode, encode
from remit_gates._model import (
    Claim,
    Consumption,
    Continuation,
    Holder,
    Intent,
    Outcome,
    Phase,
    Record,
)
from remit_gates.errors import SchemaMismatch
from tests.unit.worlds import Ledger


TEXT = st.text(max_size=8)
MAYBE = st.none() | TEXT
SECONDS = st.floats(min_value=0, max_value=4e9)
COUNT = st.integers(min_value=0, max_value=2**53)
HOLDERS = st.builds(Holder, TEXT, COUNT, TEXT, TEXT)
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(["finished", "parked", "failed", "released"]),
    position=MAYBE,
    waiting=st.lists(TEXT, max_size=2).map(tuple),
    detail=MAYBE,
    actor=MAYBE,
    error=MAYBE,
    ended=st.none() | SECONDS,
)
CLAIMS = st.builds(
    Claim,
    holder=HOLDERS,
    token=COUNT,
    attempt=COUNT,
    intent=st.sampled_from(Intent),
    pauses=st.lists(TEXT, max_size=2).map(tuple),
    lease=SECONDS,
    since=SECONDS,
    key=TEXT,
    delivery=MAYBE,
    actor=MAYBE,
)
CONSUMPTIONS = st.builds(
    Consumption,
    pause=TEXT,
    generation=COUNT,
    token=COUNT,
    attempt=COUNT,
    phase=st.sampled_from(Phase),
    digest=MAYBE,
    delivery=MAYBE,
    actor=MAYBE,
    holder=HOLDERS,
    since=SECONDS,
    until=st.none() | SECONDS,
    outcome=st.none() | OUTCOMES,
    applied=st.booleans(),
    taken=COUNT,
    reopened=st.sampled_from([None, "again", "anew"]),
    continued=st.none() | st.builds(Continuation, SECONDS, MAYBE, MAYBE),
    answer=MAYBE,
)
RECORDS = st.builds(
    Record,
    token=COUNT,
    served=COUNT,
    left=TEXT,
    owed=MAYBE,
    spent=st.lists(TEXT, max_size=3).map(tuple),
    claim=st.none() | CLAIMS,
    consumptions=st.lists(CONSUMPTIONS, max_size=3).map(tuple),
    earlier=st.lists(CONSUMPTIONS, max_size=2).map(tuple),
)


@given(RECORDS)
def test_a_record_is_read_back_as_it_was(record: Record) -> None:
    back = decode(encode(record))
    assert back == record
    assert encode(back) == encode(record)


@given(RECORDS)
def test_what_is_read_back_has_the_types_that_it_had(record: Record) -> None:
    back = decode(encode(record))
    assert back.claim is None or isinstance(back.claim.intent, Intent)
    assert all(isinstance(entry.phase, Phase) for entry in back.consumptions)


@given(RECORDS)
def test_the_text_is_compact_ascii_with_sorted_keys(record: Record) -> None:
    text = encode(record)
    assert text.isascii()
    again = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert text == again


def test_an_empty_record_is_almost_nothing() -> None:
    assert encode(Record()) == '{"format":1}'
    assert decode('{"format":1}') == Record()


def test_the_written_form_of_this_format_does_not_change(ledger: Ledger) -> None:
    ledger.answer("p1", id="m1", actor="Ann")
    ledger.ends("parked", "p2")
    ledger.answer("p2", by="b", digest=None)
    assert FORMAT == 2
    assert encode(ledger.record) == (
        '{"claim":{"attempt":1,"holder":["host-b",1,"7","b"],"intent":"answer","key":"p2~0",'
        '"lease":30.0,"pauses":["p2"],"since":1002.0,"token":1002000},"consumptions":['
        '{"actor":"Ann","applied":true,"attempt":1,"delivery":"m1","digest":"yes",'
        '"generation":0,"holder":["host-a",1,"7","a"],"outcome":{"position":"c1",'
        '"state":"parked","waiting":["p2"]},"pause":"p1","phase":"settled","since":1001.0,'
        '"token":1001000,"until":1001.5},'
        '{"actor":null,"attempt":1,"delivery":null,"digest":null,"generation":0,'
        '"holder":["host-b",1,"7","b"],"pause":"p2","phase":"running","since":1002.0,'
        '"token":1002000}],"format":1,"served":1001000,"token":1002000}'
    )


def test_what_a_failed_claim_left_and_which_ids_are_spent_is_written_down(
    ledger: Ledger,
) -> None:
    ledger.start(id="m1")
    ledger.ends("finished")
    ledger.answer("p1", taken=2)
    ledger.ends("failed", applied=False)
    data = json.loads(encode(ledger.record))
    assert (data["left"], data["spent"]) == ("p1~0", ["m1"])
    assert data["consumptions"][0]["taken"] == 2
    assert decode(encode(ledger.record)) == ledger.record


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "{}",
        "[]",
        "17",
        "null",
        '"format"',
        '{"format":null}',
        '{"format":"1"}',
        '{"format":1,"claim":7}',
        '{"format":1,"claim":{"token":1}}',
        '{"format":1,"consumptions":[3]}',
        '{"format":1,"spent":3}',
    ],
)
def test_what_is_no_record_is_refused_and_not_guessed_at(text: str) -> None:
    with pytest.raises(SchemaMismatch, match=r"not in the written form.*Nothing was changed"):
        decode(text)


def test_a_record_of_a_newer_release_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"format 3.*knows 2.*Upgrade"):
        decode('{"format":3,"something":"new"}')


def test_a_record_has_the_oldest_format_that_can_say_it(ledger: Ledger) -> None:
    """A worker that knows only format 1 is shut out from nothing else."""
    ledger.answer("p1", actor="Ann")
    ledger.ends("failed")
    assert _written(ledger.record)["format"] == 1
    went_on = ledger.record
    ledger.go_on(actor="Bob")
    assert _written(ledger.record)["format"] == 2
    assert _written(replace(ledger.record, earlier=()))["format"] == 2
    ledger.record, ledger.lease_left = went_on, None
    ledger.releases()
    assert _written(ledger.record)["format"] == 2
    (entry,) = went_on.consumptions
    with_answer = replace(went_on, consumptions=(replace(entry, answer='"yes"'),))
    assert _written(with_answer)["format"] == 2
    assert _written(Record(earlier=(entry,)))["format"] == 2


def test_a_record_of_format_1_is_read() -> None:
    """As it was written before attempts were remembered."""
    text = (
        '{"consumptions":[{"actor":"Ann","attempt":2,"delivery":"m1","digest":"d1",'
        '"generation":0,"holder":["h",1,"7","n"],"outcome":{"actor":"ops","detail":"typed'
        ' wrong","state":"released"},"pause":"p1","phase":"failed","reopened":"again",'
        '"since":1001.0,"token":1001000,"until":1001.5}],"format":1,"left":"p1~0",'
        '"served":1001000,"token":1001000}'
    )
    record = decode(text)
    assert record.earlier == ()
    (entry,) = record.consumptions
    assert (entry.actor, entry.continued, entry.answer) == ("Ann", None, None)
    assert entry.outcome == Outcome("released", detail="typed wrong", actor="ops")
    assert encode(record) == text


def _written(record: Record) -> Any:
    return json.loads(encode(record))


def test_odd_numbers_survive() -> None:
    assert decode(encode(Record(token=2**63))).token == 2**63
    assert math.isclose(0.1 + 0.2, json.loads(json.dumps(0.1 + 0.2)), rel_tol=0.0)
