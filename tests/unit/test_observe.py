"""Events: all of them are logged and told, and telling never changes what happens."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from remit_gates import (
    ClaimLost,
    Event,
    Gate,
    InProgress,
    Outcome,
    Policy,
    Reason,
    RunKey,
    StoreUnavailable,
    UsageError,
    _telling,
    observed,
    set_hooks,
)
from remit_gates._drive import drive
from remit_gates._keeper import Keeper
from remit_gates._model import Claim, Delivery, Holder, Intent
from remit_gates._observe import LEVELS, Kind, logger, tell
from remit_gates._port import StorePort
from remit_gates.stores.memory import MemoryStore
from tests.unit.staged import Stage
from tests.unit.worlds import holder


RUN = RunKey("gate", "shop", "order-17")


@pytest.fixture(autouse=True)
def no_hooks() -> Iterator[None]:
    """Hooks that a test sets go with it."""
    yield
    set_hooks()


def claim(token: int = 7) -> Claim:
    holder = Holder("h#boot", 1, "2", "n")
    return Claim(holder, token, 1, Intent.ANSWER, ("p",), 30.0, 0.0, "p~0")


def test_every_kind_has_a_level() -> None:
    assert set(LEVELS) == set(get_args(Kind))


def test_what_is_said_and_what_programs_get(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "remit_gates")
    tell(Event("refused", RUN, claim(), Reason.IN_PROGRESS))
    tell(Event("served_ungated", RUN, detail="the store is down"))
    first, second = caplog.records
    assert first.getMessage() == "gate:shop/order-17: refused, claim 7, in_progress"
    assert second.getMessage() == "gate:shop/order-17: served ungated: the store is down"


def test_the_fields_of_a_log_record_are_those_that_programs_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are a promise: this test changes only to gain one."""
    caplog.set_level(logging.DEBUG, "remit_gates")
    tell(
        Event(
            "failed",
            RUN,
            claim(),
            detail="LookupError",
            error="LookupError",
            outcome=Outcome("failed"),
            seconds=1.5,
            intent=Intent.ANSWER,
            pauses=("p",),
            delivery="m1",
            actor="Ann",
        )
    )
    tell(Event("refused", RUN, reason=Reason.NOT_PARKED))
    full, bare = (fields(record) for record in caplog.records)
    assert full == {
        "remit_event": "failed",
        "remit_run": "gate:shop/order-17",
        "remit_framework": "gate",
        "remit_namespace": "shop",
        "remit_name": "order-17",
        "remit_reason": None,
        "remit_intent": "answer",
        "remit_pauses": ["p"],
        "remit_delivery": "m1",
        "remit_actor": "Ann",
        "remit_token": 7,
        "remit_attempt": 1,
        "remit_holder": "h:1",
        "remit_outcome": "failed",
        "remit_error": "LookupError",
        "remit_seconds": 1.5,
        "remit_detail": "LookupError",
    }
    assert bare.keys() == full.keys()
    assert {name for name, value in bare.items() if value} == {
        "remit_event",
        "remit_run",
        "remit_framework",
        "remit_namespace",
        "remit_name",
        "remit_reason",
    }
    assert json.loads(json.dumps(full)) == full


def fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name.startswith("remit_")}


@pytest.mark.parametrize(("kind", "level"), LEVELS.items())
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


# Hooks for the whole process.


def test_hooks_that_are_set_hear_all_from_then_on_until_others_are_set() -> None:
    first: list[str] = []
    second: list[str] = []
    set_hooks(lambda event: first.append(event.kind), lambda event: second.append(event.kind))
    tell(Event("granted", RUN))
    set_hooks(lambda event: second.append(event.kind))
    tell(Event("settled", RUN))
    set_hooks()
    tell(Event("lost", RUN))
    assert (first, second) == (["granted"], ["granted", "settled"])


def test_setting_hooks_leaves_those_who_observe() -> None:
    heard: list[Event] = []
    with observed(heard.append):
        set_hooks(lambda event: None)
        set_hooks()
        tell(Event("granted", RUN))
    assert len(heard) == 1


def test_what_cannot_be_called_is_no_hook() -> None:
    heard: list[Event] = []
    set_hooks(heard.append)
    wrong: Any = "granted"
    with pytest.raises(UsageError, match=r"str cannot be called.*as they were"):
        set_hooks(lambda event: None, wrong)
    tell(Event("granted", RUN))
    assert len(heard) == 1


class Watcher:
    """A hook that is also told when a delivery comes."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def claiming(self, run: RunKey) -> None:
        self.heard.append(f"claiming {run.run}")

    def __call__(self, event: Event) -> None:
        self.heard.append(event.kind)


def test_a_hook_may_be_told_when_a_delivery_comes() -> None:
    watcher = Watcher()
    gate = Gate(MemoryStore())
    set_hooks(watcher)
    with gate.passage("r", "p"), pytest.raises(InProgress), gate.passage("r", "p"):
        pass
    assert watcher.heard == ["claiming r", "granted", "claiming r", "refused", "settled"]


def test_what_it_raises_then_changes_nothing_either(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Watcher):
        def claiming(self, run: RunKey) -> None:
            raise RuntimeError("broken hook")

    watcher = Broken()
    set_hooks(watcher)
    with Gate(MemoryStore()).passage("r", "p"):
        pass
    assert watcher.heard == ["granted", "settled"]
    assert ["broken hook" in (record.exc_text or "") for record in caplog.records] == [True]


def test_each_delivery_that_comes_gets_one_verdict(stage: Stage) -> None:
    watcher = Watcher()
    gate = Gate(stage.store)
    serving = Gate(stage.store, policy=Policy(on_store_error="serve", on_abandoned="serve"))
    set_hooks(watcher)
    with gate.passage("r", "p"):
        stage.stalls(60)
        with serving.passage("r", "p"):
            pass
    with stage.store.down():
        with pytest.raises(StoreUnavailable), gate.passage("r", "q"):
            pass
        with serving.passage("r", "q"):
            pass
    verdicts = [kind for kind in watcher.heard if kind not in ("settled", "lost", "failed")]
    assert verdicts == [
        *("claiming r", "granted"),
        *("claiming r", "taken_over"),
        *("claiming r", "claim_failed"),
        *("claiming r", "served_ungated"),
    ]


def test_a_delivery_that_is_void_is_refused_though_the_store_is_down(stage: Stage) -> None:
    """And nobody is told that it was served."""
    keeper = Keeper(stage.store, Policy(on_store_error="serve"))
    void = Delivery(Intent.ANSWER, holder("a"), id="m1", reason=Reason.NOT_PARKED)
    with stage.store.down():
        drive(keeper.admit(RUN, void.holder, lambda *_: void), StorePort(stage.store))
    assert [(event.kind, event.reason) for event in stage.events] == [
        ("refused", Reason.NOT_PARKED)
    ]
    assert stage.events[0].delivery == "m1"


def test_a_delivery_that_is_interrupted_is_told_as_failed(stage: Stage) -> None:
    def interrupt(name: str) -> None:
        stage.store.failing = lambda name: None
        raise KeyboardInterrupt

    stage.store.failing = interrupt
    with pytest.raises(KeyboardInterrupt), Gate(stage.store).passage("r", "p"):
        pass
    assert [(event.kind, event.error) for event in stage.events] == [
        ("claim_failed", "KeyboardInterrupt")
    ]


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError])
def test_a_hook_ends_nothing(error: type[BaseException], stage: Stage) -> None:
    def leave(event: Event) -> None:
        raise error

    set_hooks(leave)
    with Gate(stage.store).passage("r", "p"):
        pass
    assert stage.kinds == ["granted", "settled"]


def test_interrupted_from_the_keyboard_while_it_is_told_a_claim_is_withdrawn(stage: Stage) -> None:
    gate = Gate(stage.store)

    def interrupted(event: Event) -> None:
        if event.kind == "granted":
            raise KeyboardInterrupt

    with observed(interrupted), pytest.raises(KeyboardInterrupt), gate.passage("r", "p"):
        pass
    assert len(stage.heartbeat) == 0
    with gate.passage("r", "p") as claim:
        assert claim.attempt == 1


def test_a_log_filter_that_raises_changes_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise RuntimeError("broken filter")

    caplog.set_level(logging.DEBUG, "remit_gates")
    logger.addFilter(broken)
    try:
        with Gate(stage.store).passage("r", "p"):
            pass
    finally:
        logger.removeFilter(broken)
    assert stage.kinds == ["granted", "settled"]
    assert capsys.readouterr().err.count("RuntimeError: broken filter") == 2


# What events say.


def test_events_say_how_long_it_took(stage: Stage) -> None:
    waiting = Gate(stage.store, policy=Policy(on_conflict="wait", wait_timeout=5, lease=60))
    with waiting.passage("r", "p", delivery="m1", actor="Ann"):
        stage.clock.now += 12.5
    granted, settled = stage.events
    assert (granted.seconds, settled.seconds) == (0.0, 12.5)
    for event in stage.events:
        assert (event.intent, event.pauses) == (Intent.ANSWER, ("p",))
        assert (event.delivery, event.actor) == ("m1", "Ann")
    assert settled.outcome == Outcome("finished")


def test_a_refusal_tells_of_the_delivery_that_was_refused(stage: Stage) -> None:
    gate = Gate(stage.store)
    with gate.passage("r", "p", actor="Ann"):
        pass
    with pytest.raises(Exception, match="answered"), gate.passage("r", "p", actor="Bob"):
        pass
    refused = stage.events[-1]
    assert (refused.kind, refused.reason, refused.actor) == ("refused", Reason.CONSUMED, "Bob")
    assert (refused.pauses, refused.intent) == (("p",), Intent.ANSWER)


def test_a_release_tells_who_and_why(stage: Stage) -> None:
    gate = Gate(stage.store)
    with pytest.raises(LookupError), gate.passage("r", "p", actor="Ann"):
        raise LookupError
    gate.release("r", actor="ops", reason="mended")
    failed, released = stage.events[-2:]
    assert (failed.kind, failed.error) == ("failed", "LookupError")
    assert (released.kind, released.actor, released.detail) == ("released", "ops", "mended")


def test_a_claim_that_was_lost_is_told_of_once(stage: Stage) -> None:
    gate = Gate(stage.store)
    with gate.passage("r", "p") as claim:
        stage.stalls(31)
        gate.release("r")
        stage.passes(31)
        with pytest.raises(ClaimLost):
            claim.check()
    assert stage.kinds == ["granted", "released", "lost"]
    assert stage.events[-1].seconds == 31.0


# The price of it.


def test_where_nobody_listens_no_event_is_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "remit_gates")
    made: list[str] = []

    def counting(kind: str, *args: Any, **more: Any) -> Event:
        made.append(kind)
        return Event(kind, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(_telling, "Event", counting)
    gate = Gate(MemoryStore())

    def use() -> None:
        with gate.passage("r", "p"), pytest.raises(InProgress), gate.passage("r", "p"):
            pass
        gate.store.delete(RunKey("gate", "", "r"))

    use()
    assert made == []
    with observed(lambda event: None):
        use()
    assert made == ["granted", "refused", "settled"]
