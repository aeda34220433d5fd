"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from remit_gates import Gate, cli
from remit_gates.errors import StoreUnavailable
from tests.unit.commands import one_line, run


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--help")
    assert status == 0
    assert err == ""
    for command in ("demo", "ls", "show", "release", "prune", "setup", "doctor"):
        assert f"    {command} " in out
        status, text, _ = run(capsys, command, "--help")
        assert status == 0
        assert text.startswith(f"usage: remit-gates {command} ")


def test_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"remit-gates": "9.8.7"}.__getitem__)
    assert run(capsys, "--version") == (0, "remit-gates 9.8.7\n", "")


def test_the_module_runs_as_the_command_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "remit_gates.cli", "bogus"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "bogus" in one_line(done.stderr)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["bogus"],
        ["setup"],
        ["release", "memory://"],
        ["demo", "--racers", "1"],
        ["demo", "--racers", "65"],
        ["demo", "--racers", "many"],
        ["demo", "--racers", "²"],
        ["demo", "--store", "memory://"],
        ["demo", "--store", "nosuch://place"],
        ["setup", "nosuch://place"],
        ["release", "nosuch://place", "run"],
    ],
)
def test_a_call_that_cannot_mean_anything_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    status, out, err = run(capsys, *argv)
    assert status == 2
    assert out == ""
    one_line(err)


def test_setup_makes_the_store_ready_and_may_be_repeated(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    for _ in range(2):
        assert run(capsys, "setup", sqlite_url) == (0, "The store is ready.\n", "")
    assert (tmp_path / "claims.db").exists()


def test_a_store_out_of_reach_is_a_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, err = run(capsys, "setup", f"sqlite:///{tmp_path / 'no' / 'folder' / 'x.db'}")
    assert (status, out) == (1, "")
    one_line(err)


def test_release_reopens_what_failed(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    gate = Gate(sqlite_url)
    with pytest.raises(ZeroDivisionError), gate.passage("order-17", pause="approve", answer="yes"):
        raise ZeroDivisionError
    command = ["release", sqlite_url, "order-17", "--framework", "gate"]
    assert run(capsys, *command, "--actor", "me", "--reason", "mended", "--yes") == (
        0,
        "gate:/order-17 may be answered again.\n",
        "",
    )
    with gate.passage("order-17", pause="approve", answer="no"):
        pass


def test_release_of_one_pause_leaves_the_others(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    gate = Gate(sqlite_url, namespace="shop")
    with pytest.raises(ZeroDivisionError), gate.passage("order-17", pause="approve", answer="yes"):
        raise ZeroDivisionError
    command = ["release", sqlite_url, "order-17", "--framework", "gate", "--namespace", "shop"]
    status, _, err = run(capsys, *command, "--yes", "--pause", "another")
    assert status == 1
    assert "gate:shop/order-17 has nothing to release" in one_line(err)
    assert run(capsys, *command, "--yes", "--pause", "approve")[0] == 0


def test_release_of_an_unknown_run_is_a_failure(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    run(capsys, "setup", sqlite_url)
    status, out, err = run(capsys, "release", sqlite_url, "nobody", "--yes")
    assert (status, out) == (1, "")
    assert "langgraph:/nobody has nothing to release" in one_line(err)


def test_release_of_a_run_being_served_is_refused(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    with Gate(sqlite_url).passage("order-17", pause="approve", answer="yes"):
        status, out, err = run(capsys, "release", sqlite_url, "order-17", "--framework", "gate")
    assert (status, out) == (1, "")
    assert "is being served" in one_line(err)


def test_a_demo_without_the_framework_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("langgraph", "langgraph.graph", "langgraph.checkpoint"):
        monkeypatch.setitem(sys.modules, module, None)
    status, out, err = run(capsys, "demo")
    assert (status, out) == (2, "")
    assert "pip install 'remit-gates[langgraph,sqlite]'" in one_line(err)
    _, _, err = run(capsys, "demo", "--store", "postgresql://user:secret@host/db")
    assert "'remit-gates[langgraph,postgres]' langgraph-checkpoint-postgres" in one_line(err)
    assert "secret" not in err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (StoreUnavailable("no\n  answer"), 1, "no answer"),
        (TimeoutError("worker 3 hangs"), 1, "worker 3 hangs"),
        (ZeroDivisionError("x"), 1, "unexpected ZeroDivisionError: x (python -X dev shows where)"),
    ],
)
def test_whatever_goes_wrong_is_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    line: str,
) -> None:
    def fails(*_: object) -> int:
        raise error

    monkeypatch.setattr(cli, "demo", fails)
    assert run(capsys, "demo") == (status, "", f"remit-gates: error: {line}\n")
