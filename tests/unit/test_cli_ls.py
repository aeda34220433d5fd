"""`remit-gates ls`: which runs, in which order, on which page."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit_gates import Gate, cli
from remit_gates.stores import _calls
from tests.unit.commands import abandon, fail, one_line, run, settle, told


def names(listed: Any) -> list[str]:
    return [each["run"] for each in listed["runs"]]


@pytest.fixture
def url(sqlite_url: str) -> str:
    """A store with a run in each phase but the first, of two frameworks and namespaces."""
    settle(sqlite_url, "a-settled")
    fail(sqlite_url, "b-failed")
    abandon(sqlite_url, "c-abandoned")
    settle(sqlite_url, "d-shop", namespace="shop")
    settle(sqlite_url, "e-other", framework="other")
    return sqlite_url


def test_a_table_for_a_reader(capsys: pytest.CaptureFixture[str], url: str) -> None:
    with Gate(url).passage("d-running", pause="approve", answer="x", actor="eve"):
        status, out, err = run(capsys, "ls", url)
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line[:3] for line in lines] == [
        ["FRAMEWORK", "NAMESPACE", "RUN"],
        ["gate", "a-settled", "settled"],
        ["gate", "b-failed", "failed"],
        ["gate", "c-abandoned", "abandoned"],
        ["gate", "d-running", "running"],
        ["gate", "shop", "d-shop"],
        ["other", "e-other", "settled"],
    ]
    assert lines[1][-2:] == ["ann", "finished"]
    assert lines[2][-2:] == ["ann", "failed"]
    assert lines[3][-2:] == ["(dead)", "bob"]
    assert lines[4][-1] == "eve"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["a-settled", "b-failed", "c-abandoned", "d-shop", "e-other"]),
        (["--framework", "other"], ["e-other"]),
        (["--namespace", ""], ["a-settled", "b-failed", "c-abandoned", "e-other"]),
        (["--namespace", "shop"], ["d-shop"]),
        (["--phase", "settled"], ["a-settled", "d-shop", "e-other"]),
        (["--phase", "failed"], ["b-failed"]),
        (["--phase", "abandoned"], ["c-abandoned"]),
        (["--phase", "running"], []),
        (["--phase", "failed", "--phase", "abandoned"], ["b-failed", "c-abandoned"]),
        (["--phase", "failed", "--phase", "settled", "--framework", "gate"],
         ["a-settled", "b-failed", "d-shop"]),
        (["--older-than", "1h"], []),
        (["--older-than", "0s", "--phase", "failed"], ["b-failed"]),
        (["--after", '["gate", "", "b"]', "--limit", "2"], ["b-failed", "c-abandoned"]),
        (["--after", '["gate", "", "b-failed"]'], ["c-abandoned", "d-shop", "e-other"]),
    ],
)  # fmt: skip
def test_what_matches(
    capsys: pytest.CaptureFixture[str], url: str, options: list[str], expected: list[str]
) -> None:
    assert names(told(capsys, "ls", url, *options)) == expected


def test_what_is_told_of_a_run(capsys: pytest.CaptureFixture[str], url: str) -> None:
    [failed] = told(capsys, "ls", url, "--phase", "failed")["runs"]
    assert (failed["framework"], failed["namespace"]) == ("gate", "")
    assert failed["claim"] is None
    assert failed["unfinished"] == ["approve"]
    assert failed["last"]["actor"] == "ann"
    assert failed["last"]["delivery"] == "msg-1"
    assert failed["last"]["outcome"]["detail"] == "ZeroDivisionError"
    assert failed["last"]["holder"]["state"] == "alive"
    assert failed["idle"] >= 0
    [dead] = told(capsys, "ls", url, "--phase", "abandoned")["runs"]
    assert dead["claim"]["holder"]["state"] == "dead"
    assert dead["claim"]["pauses"] == ["approve"]
    # Its lease lives still: that its holder died is known without it.
    assert dead["claim"]["lease_left"] > 0


def test_pages_join_without_a_gap(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    expected = sorted(f'run {number}\'s "name"' for number in range(7))
    for name in expected:
        settle(sqlite_url, name)
    found: list[str] = []
    words = ["ls", sqlite_url, "--limit", "3", "--phase", "settled", "--older-than", "0s"]
    for page in range(3):
        # The command for the next page is what the page before told, as a shell reads it.
        listed = told(capsys, *words)
        found += names(listed)
        status, _, err = run(capsys, *words)
        assert status == 0
        if page == 2:
            assert (listed["next"], err) == (None, "")
            break
        assert listed["next"] == ["gate", "", found[-1]]
        program, *words = shlex.split(err.partition("There are more: ")[2])
        assert program == "remit-gates"
        assert words[words.index("--older-than") + 1] == "0s"
    assert found == expected


def test_a_full_last_page_promises_no_other(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    for name in ("a", "b"):
        settle(sqlite_url, name)
    listed = told(capsys, "ls", sqlite_url, "--limit", "2")
    assert (names(listed), listed["next"]) == (["a", "b"], None)


def test_nothing_that_matches_is_no_failure(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert run(capsys, "ls", url, "--namespace", "none") == (0, "", "No run matches.\n")


def test_only_the_page_is_read(
    capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_calls, "FIRST", 2)
    monkeypatch.setattr(_calls, "PAGE", 2)
    read: list[Any] = []
    entries = _calls._entries

    def noted(rows: list[Any]) -> list[Any]:
        read.extend(rows)
        return entries(rows)

    monkeypatch.setattr(_calls, "_entries", noted)
    told(capsys, "ls", url, "--limit", "1")
    assert len(read) == 2


def test_a_name_commands_no_terminal(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    settle(sqlite_url, "evil\x1b[2J\n")
    settle(sqlite_url, "innocent")
    _, out, err = run(capsys, "ls", sqlite_url, "--limit", "1")
    assert "evil\\x1b[2J\\n" in out
    assert "\x1b" not in out + err
    assert names(told(capsys, "ls", sqlite_url))[0] == "evil\x1b[2J\n"


def test_rich_lays_a_table_out_on_a_terminal(
    capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    settle(url, "[red]brackets[/red]")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    _, out, _ = run(capsys, "ls", url)
    assert "\x1b[" in out
    assert "[red]brackets[/red]" in out


def test_without_rich_it_is_plain(
    capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run(capsys, "ls", url, "--phase", "failed")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for module in ("rich", "rich.console", "rich.table", "rich.text"):
        monkeypatch.setitem(sys.modules, module, None)
    assert run(capsys, "ls", url, "--phase", "failed") == plain


def test_a_file_that_is_not_there_is_not_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = tmp_path / "typo.db"
    for command in (["ls"], ["show", "run"], ["release", "run"], ["prune", "--older-than", "1d"]):
        name, *rest = command
        status, out, err = run(capsys, name, f"sqlite:///{missing}", *rest)
        assert (status, out) == (1, "")
        assert f"no file {missing}" in one_line(err)
    assert not missing.exists()


def test_a_database_of_somebody_else_is_left_as_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "theirs.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = file.read_bytes()
    for command in (["ls"], ["show", "run"], ["doctor"], ["setup", "--dry-run"]):
        name, *rest = command
        status, _, err = run(capsys, name, f"sqlite:///{file}", *rest)
        assert status == (0 if name == "setup" else 1)
        assert name in ("doctor", "setup") or "no table remit_gates" in one_line(err)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_output_that_nobody_reads_to_the_end_is_no_failure(url: str) -> None:
    # The pipe is closed before anything is written, as `| head` may do.
    code = (
        "import os, sys; from remit_gates import cli;"
        " r, w = os.pipe(); os.close(r); os.dup2(w, 1); sys.exit(cli.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "ls", url], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_json_is_one_object(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert cli.main(["ls", url, "--json", "--limit", "1"]) == 0
    out, err = capsys.readouterr()
    assert set(json.loads(out)) == {"runs", "next"}
    assert err == ""
