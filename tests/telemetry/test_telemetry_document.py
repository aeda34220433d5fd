"""docs/telemetry.md names what there is, and all of it."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from pathlib import Path
from typing import get_args

import pytest

from remit_gates import Attempt, Event, Gate, RunKey, open_store, otel
from remit_gates._observe import LEVELS, Kind, tell
from tests.telemetry.recording import Recording
from tests.telemetry.test_otel import play
from tests.unit.staged import Stage


PAGE = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    _, _, below = PAGE.partition(f"# {heading}\n")
    rows = []
    for line in below.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif rows:
            break
    return [[cell.strip("| ") for cell in row] for row in rows[2:]]


def names(heading: str) -> list[str]:
    return [row[0].strip("`") for row in table(heading)]


def test_every_kind_of_event_is_there_with_its_level() -> None:
    told = {row[0].strip("`"): row[1] for row in table("Events")}
    assert told == {kind: logging.getLevelName(LEVELS[kind]).lower() for kind in get_args(Kind)}
    assert set(names("Events")[:5]) == otel.VERDICTS


def test_every_field_of_a_log_record_is_there(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "remit_gates")
    tell(Event("granted", RunKey("gate", "", "r")))
    found = [name for name in vars(caplog.records[0]) if name.startswith("remit_")]
    assert names("Log records") == found


def test_every_metric_is_there_with_its_unit_and_attributes(
    recording: Recording, stage: Stage
) -> None:
    recording.instrument()
    play(stage)
    otel.gauge_abandoned(
        stage.store, framework="gate", namespace="", meter_provider=recording.meters
    )
    found = recording.metrics()
    told = {row[0].strip("`"): row for row in table("Metrics")}
    assert set(told) == set(found)
    for name, metric in found.items():
        instrument, unit = told[name][1].split(", ")
        assert unit.strip("`") == metric.unit
        kind = {"counter": "Sum", "histogram": "Histogram", "gauge": "Gauge"}[instrument]
        assert type(metric.data).__name__ == kind
        allowed = re.findall(r"[a-z.]+", told[name][3])
        used = {
            key.removeprefix("remit_gates.")
            for point in metric.data.data_points
            for key in point.attributes or ()
        }
        assert used <= set(allowed), name


def test_every_attribute_is_there(recording: Recording, stage: Stage) -> None:
    recording.instrument()
    play(stage)
    used = {key for span in recording.spans() for key in span.attributes or ()}
    for metric in recording.metrics().values():
        used |= {key for point in metric.data.data_points for key in point.attributes or ()}
    assert used == set(names("Attributes"))


def test_every_field_of_an_attempt_is_there() -> None:
    told = [name for row in table("Audit") for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(told) == sorted(spec.name for spec in dataclasses.fields(Attempt))


def test_the_query_finds_the_age_of_the_oldest_abandoned_claim(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    query, index = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    store = open_store(postgres_url)
    store.setup()
    try:
        with psycopg.connect(postgres_url, autocommit=True) as conn:

            def age() -> float:
                row = conn.execute(query.encode()).fetchone()
                assert row is not None
                return float(row[0])

            assert age() == 0.0
            gate = Gate(store)
            with gate.passage("live", "p"), gate.passage("r", "p"), gate.passage("s", "p"):
                assert age() == 0.0
                for run, seconds in (("r", 300), ("s", 900)):
                    conn.execute(
                        "UPDATE remit_gates SET expires = clock_timestamp() - %s * interval '1 s'"
                        " WHERE run = %s",
                        (seconds, run),
                    )
                assert 900 <= age() < 1000
                conn.execute(index.encode())
                conn.execute("SET enable_seqscan = off")
                plan = "\n".join(row[0] for row in conn.execute(f"EXPLAIN {query}".encode()))
                assert "remit_gates_expires" in plan
                assert 900 <= age() < 1000
    finally:
        store.close()


def test_a_formatter_of_json_can_write_every_record(
    recording: Recording, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "remit_gates")
    play(stage)
    told = [vars(record) for record in caplog.records if hasattr(record, "remit_event")]
    assert {fields["remit_event"] for fields in told} >= otel.VERDICTS
    for fields in told:
        text = json.dumps({name: fields[name] for name in names("Log records")})
        assert len(json.loads(text)) == len(names("Log records"))
