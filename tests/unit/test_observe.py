"""Events: all of them are logged and told, and telling never changes what happens."""

from __future__ import annotations

import logging
from typing import get_args

import pytest

from remit_gates import Event, Gate, InProgress, Outcome, Reason, RunKey, observed
from remit_gates._model import Claim, Holder, Intent
from remit_gates._observe import _LEVELS, Kind, tell
from remit_gates.stores.memory import MemoryStore


RUN = RunKey("gate", "shop", "order-17")


def claim(token: int = 7) -> Claim:
    holder = Holder("h", 1, "2", "n")
    return Claim(holder, token, 1, Intent.ANSWER, ("p",), 30.0, 0.0, "p~0")


def test_every_kind_has_a_level() -> None:
    assert set(_LEVELS) == set(get_args(Kind))


def test_what_is_said_and_what_programs_get(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "remit_gates")
    tell(Event("refused", RUN, claim(), Reason.IN_PROGRESS))
    tell(Event("served_ungated", RUN, detail="the store is down"))
    first, second = caplog.records
    assert first.getMessage() == "gate:shop/order-17: refused, claim 7, in_progress"
    assert second.getMessage() == "gate:shop/order-17: served ungated: the store is down"
    fields = [
        {name: value for name, value in vars(record).items() if name.startswith("remit_")}
        for record in (first, second)
    ]
    assert fields == [
        {
            "remit_event": "refused",
            "remit_run": "gate:shop/order-17",
            "remit_token": 7,
            "remit_reason": "in_progress",
        },
        {
            "remit_event": "served_ungated",
            "remit_run": "gate:shop/order-17",
            "remit_token": None,
            "remit_reason": None,
        },
    ]


@pytest.mark.parametrize(("kind", "level"), _LEVELS.items())
def test_each_kind_is_logged_at_its_level(
    caplog: pytest.LogCaptureFixture, kind: Kind, level: int
) -> None:
    caplog.set_level(level, "remit_gates")
    tell(Event(kind, RUN))
    assert [record.levelno for record in caplog.records] == [level]
    caplog.set_level(level + 1, "remit_gates")
    caplog.clear()
    tell(Event(kind, RUN))
    assert not caplog.records


def test_hooks_hear_what_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "remit_gates")
    heard: list[Event] = []
    with observed(heard.append):
        tell(Event("granted", RUN, claim()))
    assert [event.kind for event in heard] == ["granted"]


def test_a_hook_is_called_only_while_its_context_lasts() -> None:
    outer: list[Event] = []
    inner: list[Event] = []
    with observed(outer.append):
        with observed(inner.append):
            tell(Event("granted", RUN))
        tell(Event("settled", RUN))
    tell(Event("lost", RUN))
    assert [event.kind for event in outer] == ["granted", "settled"]
    assert [event.kind for event in inner] == ["granted"]


def test_contexts_need_not_be_left_in_order() -> None:
    first: list[Event] = []
    second: list[Event] = []
    early, late = observed(first.append), observed(second.append)
    early.__enter__()
    late.__enter__()
    early.__exit__(None, None, None)
    tell(Event("granted", RUN))
    late.__exit__(None, None, None)
    assert (len(first), len(second)) == (0, 1)


def test_one_hook_observed_twice_is_let_go_of_once_at_a_time() -> None:
    heard: list[Event] = []

    def hook(event: Event) -> None:
        heard.append(event)

    with observed(hook):
        with observed(hook):
            pass
        tell(Event("granted", RUN))
    tell(Event("settled", RUN))
    assert [event.kind for event in heard] == ["granted"]


def test_a_hook_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("broken hook")

    gate = Gate(MemoryStore())
    with observed(broken), observed(heard.append), gate.passage("r", "p"):
        pass
    assert [event.kind for event in heard] == ["granted", "settled"]
    assert ["broken hook" in (record.exc_text or "") for record in caplog.records] == [True] * 2


def test_a_run_from_end_to_end_as_it_is_told() -> None:
    gate = Gate(MemoryStore())
    heard: list[Event] = []
    with observed(heard.append):
        with gate.passage("r", "p", "secret") as held:
            with pytest.raises(InProgress), gate.passage("r", "p", "secret"):
                pass
            held.parked("q")
        with pytest.raises(LookupError), gate.passage("r", "q"):
            raise LookupError("not to be told")
        gate.release("r", reason="typed wrong")
    told = [(event.kind, event.reason, event.detail) for event in heard]
    assert told == [
        ("granted", None, ""),
        ("refused", Reason.IN_PROGRESS, ""),
        ("settled", None, ""),
        ("granted", None, ""),
        ("failed", None, "LookupError"),
        ("released", None, "typed wrong"),
    ]
    assert heard[1].claim == heard[0].claim
    assert not any("secret" in str(event) or "not to be told" in str(event) for event in heard)
    assert Outcome("failed", detail="LookupError").detail == heard[4].detail
