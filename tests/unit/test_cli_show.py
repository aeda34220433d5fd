"""`remit-gates show`: all that the record of one run holds, and what may be done about it."""

from __future__ import annotations

import shlex

import pytest

from remit_gates import Gate, Policy
from tests.unit.commands import abandon, fail, one_line, run, settle, told


GATE = ("--framework", "gate")


def test_a_run_that_failed(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    fail(sqlite_url, "order-17", namespace="shop")
    status, out, err = run(capsys, "show", sqlite_url, "order-17", *GATE, "--namespace", "shop")
    assert (status, err) == (0, "")
    assert out.startswith("gate:shop/order-17 is failed\n")
    row = out.splitlines()[3].split()
    assert row[:3] == ["approve", "failed", "1"]
    assert row[4:6] == ["ann", "msg-1"]
    assert row[-2:] == ["failed:", "ZeroDivisionError"]
    assert "Mend the cause" in out
    # The command that it names does what it says.
    named = out[out.index("remit-gates release") :].partition("--reason")[0]
    assert run(capsys, *shlex.split(named)[1:], "--yes")[0] == 0


def test_an_abandoned_one(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    abandon(sqlite_url, "order-17")
    _, out, _ = run(capsys, "show", sqlite_url, "order-17", *GATE)
    assert out.startswith("gate:/order-17 is abandoned\n")
    assert "(known dead)" in out
    assert "actor       bob" in out
    assert "How far it got is not known." in out
    document = told(capsys, "show", sqlite_url, "order-17", *GATE)
    assert document["claim"]["idempotency_key"]
    assert document["claim"]["intent"] == "answer"
    assert document["consumptions"] == [document["last"]]


def test_a_running_one(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    with Gate(sqlite_url).passage("order-17", pause="approve", answer="x"):
        _, out, _ = run(capsys, "show", sqlite_url, "order-17", *GATE)
    assert out.startswith("gate:/order-17 is running\n")
    assert "(alive)" in out
    assert "s left" in out
    assert "Wait for it." in out


def test_one_that_finished_and_one_that_was_released(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    settle(sqlite_url, "done")
    _, out, _ = run(capsys, "show", sqlite_url, "done", *GATE)
    assert out.startswith("gate:/done is settled\n")
    assert out.rstrip().endswith("finished")
    fail(sqlite_url, "freed")
    command = ["release", sqlite_url, "freed", *GATE, "--actor", "eve", "--reason", "mended it"]
    run(capsys, *command, "--yes")
    _, out, _ = run(capsys, "show", sqlite_url, "freed", *GATE)
    assert out.startswith("gate:/freed is settled\n")
    assert "failed, re-opened" in out
    assert out.rstrip().endswith("failed: ZeroDivisionError, released by eve: mended it")


def test_what_came_before_the_last_attempt(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    fail(sqlite_url, "order-17")
    command = ["release", sqlite_url, "order-17", *GATE, "--actor", "eve", "--reason", "mended it"]
    run(capsys, *command, "--yes")
    gate = Gate(sqlite_url, policy=Policy(record_answers=True))
    with gate.passage("order-17", "approve", {"ok": True}, actor="bob"):
        _, out, _ = run(capsys, "show", sqlite_url, "order-17", *GATE)
        document = told(capsys, "show", sqlite_url, "order-17", *GATE)
    rows = out.partition("Earlier attempts\n")[2].splitlines()
    assert rows[1].split()[:3] == ["approve", "1", "failed"]
    assert "ann" in rows[1]
    assert rows[1].endswith("failed: ZeroDivisionError, released by eve: mended it")
    first, second = document["history"]
    assert (first["state"], first["actor"], first["answer"]) == ("failed", "ann", None)
    assert (first["release"]["actor"], first["release"]["reason"]) == ("eve", "mended it")
    assert first["until"] < first["release"]["at"] <= second["answered"]
    assert (second["state"], second["actor"], second["answer"]) == (
        "running",
        "bob",
        '{"ok": true}',
    )


def test_no_answer_is_shown(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    with Gate(sqlite_url).passage("order-17", pause="approve", answer="a secret"):
        pass
    for form in ([], ["--json"]):
        _, out, _ = run(capsys, "show", sqlite_url, "order-17", *GATE, *form)
        assert "a secret" not in out


def test_one_that_is_not_there(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    settle(sqlite_url, "order-17")
    status, out, err = run(capsys, "show", sqlite_url, "order-17")
    assert (status, out) == (1, "")
    assert "langgraph:/order-17 has no record" in one_line(err)


def test_a_holder_elsewhere_is_not_known(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandon(sqlite_url, "order-17")
    monkeypatch.setattr("remit_gates._liveness._host", lambda: "elsewhere")
    document = told(capsys, "show", sqlite_url, "order-17", *GATE)
    assert document["claim"]["holder"]["state"] == "unknown"
    # Only the lease tells, and it lives.
    assert document["phase"] == "running"
