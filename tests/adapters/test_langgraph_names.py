"""A pause keeps its record when LangGraph changes how it names interrupts."""

from __future__ import annotations

from langgraph.types import Interrupt

from remit_gates._model import Consumption, Holder, Phase, Record
from remit_gates.langgraph._pauses import INTERRUPT, RESUME, waiting


def record(pause: str) -> Record:
    holder = Holder("host", 1, "2", "nonce")
    entry = Consumption(pause, 0, 7, 1, Phase.FAILED, "digest", None, None, holder, 1.0)
    return Record(token=7, served=7, consumptions=(entry,))


def writes(*answers: str) -> list[tuple[str, str, object]]:
    asked = ("task", INTERRUPT, [Interrupt(value="ok?", id="ab" * 16)])
    return [asked, ("task", RESUME, list(answers))] if answers else [asked]


def test_an_entry_from_before_ids_were_ordinal_is_found() -> None:
    (wait,) = waiting("c1", writes("yes"), record("c1:" + "ab" * 16 + ":0"), ordinal=True)
    assert wait.pause == "c1:" + "ab" * 16 + ":0"


def test_without_such_an_entry_the_id_alone_is_the_name() -> None:
    for known in (Record(), record("c1:" + "ab" * 16), record("c1:" + "cd" * 16 + ":0")):
        (wait,) = waiting("c1", writes("yes"), known, ordinal=True)
        assert wait.pause == "c1:" + "ab" * 16


def test_where_ids_repeat_an_answer_more_is_the_next_question() -> None:
    name = "c1:" + "ab" * 16
    (first,) = waiting("c1", writes(), Record(), ordinal=False)
    (second,) = waiting("c1", writes("yes"), Record(), ordinal=False)
    assert (first.pause, second.pause) == (f"{name}:0", f"{name}:1")
    assert not first.repeated
    assert second.repeated


def test_where_ids_repeat_an_answer_more_after_a_failure_is_not() -> None:
    name = "c1:" + "ab" * 16 + ":0"
    (wait,) = waiting("c1", writes("yes"), record(name), ordinal=False)
    assert wait.pause == name
