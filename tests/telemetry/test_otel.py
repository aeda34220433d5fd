"""What OpenTelemetry gets to see of a gate, by the SDK's own exporters."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from remit_gates import (
    AlreadyConsumed,
    AsyncGate,
    Gate,
    InProgress,
    MissingExtra,
    Policy,
    StoreUnavailable,
    UsageError,
    otel,
)
from remit_gates.stores.memory import MemoryStore
from tests.telemetry.recording import Recording, attributes
from tests.unit.staged import Stage


def play(stage: Stage) -> None:
    """One of each thing that can happen."""
    gate = Gate(stage.store, namespace="shop")
    serving = Gate(
        stage.store,
        policy=Policy(on_abandoned="serve", on_store_error="serve"),
        namespace="shop",
    )
    with gate.passage("r", "p", delivery="m1"):
        stage.clock.now += 2.0
        with pytest.raises(InProgress), gate.passage("r", "p"):
            pass
    with pytest.raises(AlreadyConsumed), gate.passage("r", "p"):
        pass
    with gate.passage("s", "p"):
        stage.stalls(40)
        with serving.passage("s", "p"):
            stage.clock.now += 1.0
    with pytest.raises(LookupError), gate.passage("t", "p"), stage.store.down("renew"):
        _fail_after(stage, 11)
    gate.release("t")
    with stage.store.down():
        with pytest.raises(StoreUnavailable), gate.passage("u", "p"):
            pass
        with serving.passage("u", "p"):
            pass
    with gate.passage("v") as parked:
        parked.parked("q")
        stage.store.failing = _once_down(stage)


def _fail_after(stage: Stage, seconds: float) -> None:
    stage.passes(seconds)
    raise LookupError


def _once_down(stage: Stage) -> Callable[[str], None]:
    def fail(name: str) -> None:
        stage.store.failing = lambda name: None
        raise StoreUnavailable("down.")

    return fail


def test_each_kind_of_event_is_counted(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    play(stage)
    counted = {kind: recording.count(kind) for kind in otel.COUNTERS}
    assert counted == {
        "granted": 4,
        "taken_over": 1,
        "refused": 2,
        "claim_failed": 1,
        "served_ungated": 1,
        "lost": 1,
        "unsettled": 1,
        "renewal_failed": 1,
        "released": 1,
    }
    assert recording.count("refused", reason="in_progress") == 1
    assert recording.count("refused", reason="consumed", intent="answer", namespace="shop") == 1
    assert recording.count("granted", framework="gate", intent="continue") == 1


def test_claim_and_hold_time_are_measured(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    play(stage)
    assert recording.times("claim.duration") == (9, 0.0)
    assert recording.times("claim.duration", verdict="refused") == (2, 0.0)
    assert recording.times("hold.duration", outcome="finished", intent="answer") == (2, 3.0)
    assert recording.times("hold.duration", outcome="lost") == (1, 41.0)
    assert recording.times("hold.duration", outcome="failed") == (1, 11.0)
    stage.passes(4)
    assert recording.times("hold.duration", outcome="parked")[0] == 1


def test_waiting_for_another_is_part_of_claim_time(recording: Recording, stage: Stage) -> None:
    waiting = Gate(stage.store, policy=Policy(on_conflict="wait", wait_timeout=0))
    recording.instrument()
    stage.store.failing = lambda name: setattr(stage.clock, "now", stage.clock.now + 0.25)
    with waiting.passage("r", "p"):
        pass
    # One read and one swap, each of which took a quarter of a second.
    assert recording.times("claim.duration") == (1, 0.5)


def test_the_buckets_fit_what_is_measured(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    play(stage)
    found = recording.metrics()
    for name, bounds in (("claim", otel.CLAIM_SECONDS), ("hold", otel.HOLD_SECONDS)):
        metric = found[f"remit_gates.{name}.duration"]
        assert metric.unit == "s"
        assert tuple(metric.data.data_points[0].explicit_bounds) == bounds  # type: ignore[union-attr]


def test_each_delivery_has_a_span(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    play(stage)
    spans = [attributes(span) for span in recording.spans()]
    assert [(span["run"], span["verdict"]) for span in spans] == [
        ("r", "granted"),
        ("r", "refused"),
        ("r", "refused"),
        ("s", "granted"),
        ("s", "taken_over"),
        ("t", "granted"),
        ("u", "claim_failed"),
        ("u", "served_ungated"),
        ("v", "granted"),
    ]
    granted, busy, late = spans[:3]
    assert granted == {
        "framework": "gate",
        "namespace": "shop",
        "run": "r",
        "intent": "answer",
        "pauses": ("p",),
        "delivery": "m1",
        "verdict": "granted",
        "token": granted["token"],
        "attempt": 1,
    }
    assert (busy["reason"], busy["token"]) == ("in_progress", granted["token"])
    assert (late["reason"], late["pauses"]) == ("consumed", ("p",))


def test_only_an_error_makes_a_span_an_error(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    play(stage)
    wrong = [span for span in recording.spans() if span.status.status_code is StatusCode.ERROR]
    assert [(attributes(span)["verdict"], span.status.description) for span in wrong] == [
        ("claim_failed", "StoreUnavailable")
    ]
    assert attributes(wrong[0])["error.type"] == "StoreUnavailable"


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_span_is_around_what_the_store_is_asked_and_around_nothing_else(
    recording: Recording, colour: str
) -> None:
    recording.instrument()
    inner = MemoryStore()

    class Traced:
        """A store whose driver is instrumented."""

        def __getattr__(self, name: str) -> Any:
            def call(*args: Any) -> Any:
                with recording.tracer.start_as_current_span(name):
                    return getattr(inner, name)(*args)

            return call

        def renewer(self) -> Any:
            return inner

    async def aplay() -> None:
        gate = AsyncGate(_Awaited(Traced()))
        with recording.tracer.start_as_current_span("request"):
            async with gate.passage("r", "p"):
                with recording.tracer.start_as_current_span("node"):
                    await asyncio.sleep(0)
            with pytest.raises(AlreadyConsumed):
                async with gate.passage("r", "p"):
                    pass

    def play() -> None:
        gate = Gate(_Plain(Traced()))
        with recording.tracer.start_as_current_span("request"):
            with gate.passage("r", "p"), recording.tracer.start_as_current_span("node"):
                pass
            with pytest.raises(AlreadyConsumed), gate.passage("r", "p"):
                pass

    if colour == "sync":
        play()
    else:
        asyncio.run(aplay())
    spans = recording.exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    tree = [(span.name, span.parent and names[span.parent.span_id]) for span in spans]
    assert tree == [
        ("read", "remit_gates.claim"),
        ("swap", "remit_gates.claim"),
        ("remit_gates.claim", "request"),
        ("node", "request"),
        ("swap", "request"),
        ("read", "remit_gates.claim"),
        ("remit_gates.claim", "request"),
        ("request", None),
    ]


class _Plain:
    """A store whose methods are those of `traced`."""

    def __init__(self, traced: Any) -> None:
        self._traced = traced

    def read(self, *args: Any) -> Any:
        return self._traced.read(*args)

    def swap(self, *args: Any) -> Any:
        return self._traced.swap(*args)

    def renew(self, *args: Any) -> Any:
        return self._traced.renew(*args)

    def delete(self, *args: Any) -> Any:
        return self._traced.delete(*args)

    def scan(self, *args: Any) -> Any:
        return self._traced.scan(*args)

    def prune(self, *args: Any) -> Any:
        return self._traced.prune(*args)

    def setup(self) -> Any:
        return self._traced.setup()

    def close(self) -> Any:
        return self._traced.close()

    def renewer(self) -> Any:
        return self._traced.renewer()


class _Awaited(_Plain):
    """The same, awaited."""

    async def read(self, *args: Any) -> Any:
        await asyncio.sleep(0)
        return self._traced.read(*args)

    async def swap(self, *args: Any) -> Any:
        await asyncio.sleep(0)
        return self._traced.swap(*args)

    async def renew(self, *args: Any) -> Any:
        return self._traced.renew(*args)


def test_identifiers_are_hashed_on_request(recording: Recording, stage: Stage) -> None:
    recording.instrument(hash_identifiers=True, hash_key="pepper")
    gate = Gate(stage.store, namespace="shop")
    for _ in range(2):
        try:
            with gate.passage("order-17", "approve", delivery="m1"):
                pass
        except AlreadyConsumed:
            pass
    first, second = map(attributes, recording.spans())
    hidden = [first["run"], first["namespace"], first["delivery"], *first["pauses"]]
    assert len(set(hidden)) == 4
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in hidden)
    for name in ("run", "namespace", "pauses"):
        assert first[name] == second[name]
    assert recording.count("granted", namespace=first["namespace"]) == 1
    told = str(recording.metrics()) + str([span.to_json() for span in recording.spans()])
    assert not [name for name in ("order-17", "approve", "shop", '"m1"') if name in told]
    recording.instrument(hash_identifiers=True, hash_key=b"salt")
    with Gate(stage.store).passage("order-17"):
        pass
    third = attributes(recording.spans()[-1])
    assert third["run"] != first["run"]
    assert third["namespace"] == ""


def test_neither_answers_nor_actors_are_recorded(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    gate = Gate(stage.store, policy=Policy(record_answers=True))
    with gate.passage("r", "p", "a secret", actor="Ann"):
        pass
    told = str(recording.metrics()) + str([span.to_json() for span in recording.spans()])
    assert "a secret" not in told
    assert "Ann" not in told


def test_instrumenting_twice_counts_once(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    recording.instrument()
    with Gate(stage.store).passage("r", "p"):
        pass
    assert recording.count("granted") == 1
    assert len(recording.spans()) == 1


def test_nothing_is_recorded_any_more_once_it_is_taken_out(
    recording: Recording, stage: Stage
) -> None:
    otel.uninstrument()
    recording.instrument()
    otel.uninstrument()
    with Gate(stage.store).passage("r", "p"):
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert recording.metrics() == {}
    assert recording.spans() == []


def test_taken_out_in_the_middle_nothing_breaks(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    with Gate(stage.store).passage("r", "p"):
        otel.uninstrument()
    assert [event.kind for event in stage.events] == ["granted", "settled"]


def test_what_the_sdk_raises_changes_nothing(
    recording: Recording, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.instrument()

    def broken(*args: Any, **more: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr("opentelemetry.sdk.metrics._internal.instrument.Counter.add", broken)
    monkeypatch.setattr("opentelemetry.sdk.trace.Tracer.start_span", broken)
    with Gate(stage.store).passage("r", "p"):
        pass
    assert stage.kinds == ["granted", "settled"]


def test_without_an_sdk_it_costs_nothing_but_calls(stage: Stage) -> None:
    """The API's own providers record nothing."""
    otel.instrument()
    try:
        with Gate(stage.store).passage("r", "p"):
            pass
    finally:
        otel.uninstrument()
    assert stage.kinds == ["granted", "settled"]


# The age of the oldest abandoned claim.


def test_the_oldest_abandoned_claim_has_an_age(recording: Recording, stage: Stage) -> None:
    otel.gauge_abandoned(stage.store, meter_provider=recording.meters)
    assert recording.count("abandoned.age") == 0.0
    gate = Gate(stage.store)
    with gate.passage("r", "p"), gate.passage("s", "p"):
        assert recording.count("abandoned.age") == 0.0
        stage.stalls(45)
        with gate.passage("t", "p"):
            assert recording.count("abandoned.age") == 15.0
            stage.stalls(10)
            assert recording.count("abandoned.age") == 25.0


def test_the_gauge_is_of_one_framework_and_namespace(recording: Recording, stage: Stage) -> None:
    for namespace in ("a", "b"):
        otel.gauge_abandoned(
            stage.store, framework="gate", namespace=namespace, meter_provider=recording.meters
        )
    with Gate(stage.store, namespace="a").passage("r", "p"):
        stage.stalls(31)
        assert recording.count("abandoned.age", namespace="a", framework="gate") == 1.0
        assert recording.count("abandoned.age", namespace="b") == 0.0


def test_a_store_that_does_not_answer_leaves_a_gap(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    class Down(MemoryStore):
        def scan(self, *args: Any, **more: Any) -> Any:
            raise StoreUnavailable("down.")

    otel.gauge_abandoned(Down(), meter_provider=recording.meters)
    caplog.set_level(logging.CRITICAL)
    assert "remit_gates.abandoned.age" not in recording.metrics()


def test_the_gauge_of_no_store_is_refused() -> None:
    with pytest.raises(UsageError):
        otel.gauge_abandoned(17)


# What is loaded.


def test_without_the_api_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "remit_gates.otel")
    with pytest.raises(MissingExtra, match=r"pip install 'remit-gates\[otel\]'"):
        import remit_gates.otel  # noqa: F401


def test_it_loads_the_api_and_no_sdk() -> None:
    probe = "import remit_gates.otel, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)
    loaded = json.loads(done.stdout)
    assert "opentelemetry.trace" in loaded
    assert not [name for name in loaded if name.startswith("opentelemetry.sdk")]
