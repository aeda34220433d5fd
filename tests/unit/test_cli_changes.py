"""The commands that change something: they say what, and ask."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit_gates import Gate, open_store
from remit_gates._cli import common
from remit_gates._cli import release as release_module
from remit_gates._model import RunKey
from remit_gates.errors import AlreadyConsumed
from tests.unit.commands import Terminal, abandon, fail, one_line, run, settle, told


GATE = ("--framework", "gate")
RUN = RunKey("gate", "", "order-17")


def record(url: str) -> Any:
    store = open_store(url)
    snapshot = store.read(RUN)
    store.close()
    return snapshot.record


def runs(url: str) -> list[str]:
    store = open_store(url)
    found = [entry.run.run for entry in store.scan()]
    store.close()
    return found


def test_without_a_terminal_nothing_is_changed(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    fail(sqlite_url, "order-17")
    before = record(sqlite_url)
    for command in (
        ["release", sqlite_url, "order-17", *GATE],
        ["prune", sqlite_url, "--older-than", "0s"],
    ):
        for form in ([], ["--json"]):
            status, out, err = run(capsys, *command, *form)
            assert (status, out) == (2, "")
            assert "Add --yes" in one_line(err)
    assert record(sqlite_url) == before


@pytest.mark.parametrize("typed", ["", "\n", "n\n", "no\n", "yess\n"])
def test_whoever_does_not_say_yes_changes_nothing(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sqlite_url: str,
    typed: str,
) -> None:
    fail(sqlite_url, "order-17")
    before = record(sqlite_url)
    for command in (
        ["release", sqlite_url, "order-17", *GATE],
        ["prune", sqlite_url, "--older-than", "0s"],
    ):
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        status, out, err = run(capsys, *command)
        assert (status, out) == (1, "")
        assert "[y/N] remit-gates: error: Not confirmed. Nothing was" in err
    assert record(sqlite_url) == before


@pytest.mark.parametrize("typed", ["y\n", "YES\n"])
def test_whoever_says_yes_is_told_first_what_it_is_about(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sqlite_url: str,
    typed: str,
) -> None:
    fail(sqlite_url, "order-17")
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    status, out, err = run(capsys, "release", sqlite_url, "order-17", *GATE)
    assert (status, out) == (0, "gate:/order-17 may be answered again.\n")
    assert re.fullmatch(
        r"gate:/order-17 is failed: pause approve was answered by ann at \S+ and failed with"
        r" ZeroDivisionError\. Release it, so that it may be answered again\? \[y/N\] ",
        err,
    )
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert run(capsys, "prune", sqlite_url, "--older-than", "0s")[:2] == (
        0,
        "Records forgotten: 1.\n",
    )


def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    fail(sqlite_url, "order-17")
    settle(sqlite_url, "old")
    before = record(sqlite_url)
    status, out, err = run(capsys, "release", sqlite_url, "order-17", *GATE, "--dry-run")
    assert (status, err) == (0, "")
    assert "It would be released. Nothing was changed." in out
    assert told(capsys, "release", sqlite_url, "order-17", *GATE, "--dry-run") == {
        "framework": "gate",
        "namespace": "",
        "run": "order-17",
        "pauses": ["approve"],
        "released": False,
        "actor": common.actor(),
        "reason": None,
    }
    status, out, err = run(capsys, "prune", sqlite_url, "--older-than", "0s", "--dry-run")
    assert (status, err) == (0, "")
    assert out.startswith("Records with no claim")
    assert ": 2, of which 1 failed. They would be forgotten." in out
    pruned = told(capsys, "prune", sqlite_url, "--older-than", "0s", "--dry-run")
    assert pruned == {"pruned": 0, "would_prune": 2, "failed": 1}
    assert record(sqlite_url) == before


def test_actor_and_reason_land_in_the_record(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    command = ["release", sqlite_url, "order-17", *GATE, "--yes"]
    fail(sqlite_url, "order-17")
    run(capsys, *command, "--reason", "the provider is back")
    outcome = record(sqlite_url).consumption("approve").outcome
    assert (outcome.state, outcome.detail) == ("released", "the provider is back")
    assert re.fullmatch(r".+@.+", outcome.actor)
    fail(sqlite_url, "order-17")
    document = told(capsys, *command, "--actor", "eve")
    assert (document["actor"], document["reason"]) == ("eve", None)
    assert record(sqlite_url).consumption("approve").outcome.actor == "eve"


def test_an_actor_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert re.fullmatch(r"uid \d+@.+", common.actor())


def test_an_abandoned_run_is_released(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    abandon(sqlite_url, "order-17")
    command = ["release", sqlite_url, "order-17", *GATE]
    _, out, _ = run(capsys, *command, "--dry-run")
    assert "is abandoned: pause approve was answered by bob" in out
    assert run(capsys, *command, "--yes")[0] == 0
    assert record(sqlite_url).claim is None
    settle(sqlite_url, "order-17")


def test_what_was_shown_is_what_is_released(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    """While the question stands, the run goes on and finishes."""
    fail(sqlite_url, "order-17")

    class Thinking(Terminal):
        def isatty(self) -> bool:
            with Gate(sqlite_url).passage("order-17"):
                pass
            return True

    monkeypatch.setattr(sys, "stdin", Thinking("y\n"))
    status, out, err = run(capsys, "release", sqlite_url, "order-17", *GATE)
    assert (status, out) == (1, "")
    assert "gate:/order-17 changed since it was looked at. Nothing was released." in err
    with pytest.raises(AlreadyConsumed):
        settle(sqlite_url, "order-17")


def test_a_run_that_moves_between_look_and_swap_is_judged_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    """The look before the swap is the one that counts, and not the one before the question."""
    fail(sqlite_url, "order-17")
    real: Callable[..., Any] = release_module._release

    def late(*args: Any) -> None:
        with Gate(sqlite_url).passage("order-17"):
            real(*args)

    monkeypatch.setattr(release_module, "_release", late)
    status, _, err = run(capsys, "release", sqlite_url, "order-17", *GATE, "--yes")
    assert status == 1
    assert "changed since it was looked at" in one_line(err)


def test_a_dry_run_of_what_cannot_be_released_fails_too(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    with Gate(sqlite_url).passage("order-17", pause="approve", answer="x"):
        status, _, err = run(capsys, "release", sqlite_url, "order-17", *GATE, "--dry-run")
    assert status == 1
    assert "is being served" in one_line(err)
    status, _, err = run(capsys, "release", sqlite_url, "order-17", *GATE, "--dry-run")
    assert status == 1
    assert "nothing to release" in one_line(err)


def test_prune_keeps_the_young_and_the_claimed(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    settle(sqlite_url, "done")
    abandon(sqlite_url, "dead")
    command = ["prune", sqlite_url, "--yes", "--older-than"]
    assert run(capsys, *command, "1d") == (0, "Records forgotten: 0.\n", "")
    assert told(capsys, *command, "0s") == {"pruned": 1}
    assert runs(sqlite_url) == ["dead"]


def test_prune_needs_an_age(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    for words in ([], ["--older-than", "1"], ["--older-than", "a month"]):
        status, _, err = run(capsys, "prune", sqlite_url, "--yes", *words)
        assert status == 2
        assert "--older-than" in one_line(err)


def test_setup_says_first_whether_it_is_needed(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    dry = ["setup", sqlite_url, "--dry-run"]
    assert run(capsys, *dry)[1] == "The table would be made. Nothing was changed.\n"
    assert told(capsys, *dry) == {"ready": False}
    assert list(tmp_path.iterdir()) == []
    assert told(capsys, "setup", sqlite_url) == {"ready": True}
    assert run(capsys, *dry)[1] == "The store is ready. There is nothing to do.\n"
    assert told(capsys, *dry) == {"ready": True}


def test_with_json_the_question_is_beside_the_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    fail(sqlite_url, "order-17")
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    status, out, err = run(capsys, "release", sqlite_url, "order-17", *GATE, "--json")
    assert status == 0
    assert json.loads(out)["released"] is True
    assert err.endswith("[y/N] ")
