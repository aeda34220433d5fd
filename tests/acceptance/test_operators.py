"""The operators' commands as a person and as a script run them: real processes, exit statuses,
and a terminal to be asked at."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys

import pytest

from remit_gates import open_store
from tests.unit.commands import abandon, fail, settle


COMMAND = [sys.executable, "-m", "remit_gates.cli"]
GATE = ("--framework", "gate")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A store, set up by the command, with a run in each phase but the first."""
    made: str = request.getfixturevalue(f"{request.param}_url")
    assert done("setup", made).stdout == "The store is ready.\n"
    settle(made, "a-settled")
    fail(made, "b-failed")
    abandon(made, "c-abandoned")
    return made


def done(*argv: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """What became of a command that has no terminal."""
    ended = subprocess.run(
        [*COMMAND, *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == status, ended.stderr
    return ended


def at_a_terminal(*argv: str, types: str) -> tuple[int, str]:
    """Status and output of a command at whose question somebody types."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb"},
    ) as process:
        os.close(theirs)
        seen, typed = "", False
        while select.select([ours], [], [], 60)[0]:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end has gone
                break
            seen += read.decode()
            if "[y/N]" in seen and not typed:
                os.write(ours, types.encode())
                typed = True
        os.close(ours)
        return process.wait(60), seen.replace("\r\n", "\n")


def test_a_script_finds_what_is_stuck_and_releases_it(url: str) -> None:
    stuck = json.loads(done("ls", url, "--phase", "abandoned", "--json").stdout)
    [run] = stuck["runs"]
    key = ("--framework", run["framework"], "--namespace", run["namespace"])
    assert run["run"] == "c-abandoned"
    refused = done("release", url, run["run"], *key, status=2)
    assert (refused.stdout, refused.stderr.count("\n")) == ("", 1)
    done("release", url, run["run"], *key, "--dry-run")
    freed = done("release", url, run["run"], *key, "--reason", "nothing was charged", "--yes")
    assert freed.stdout == "gate:/c-abandoned may be answered again.\n"
    assert freed.stderr == ""
    again = done("release", url, run["run"], *key, "--yes", status=1)
    assert "nothing to release" in again.stderr
    shown = json.loads(done("show", url, run["run"], *key, "--json").stdout)
    assert shown["phase"] == "settled"
    assert shown["last"]["outcome"]["detail"] == "nothing was charged"
    assert "@" in shown["last"]["outcome"]["actor"]


def test_a_person_is_asked(url: str) -> None:
    command = ("release", url, "b-failed", *GATE)
    status, seen = at_a_terminal(*command, types="n\n")
    assert status == 1
    assert "failed with ZeroDivisionError. Release it" in seen
    assert seen.endswith("Not confirmed. Nothing was released.\n")
    status, seen = at_a_terminal(*command, types="y\n")
    assert status == 0
    assert seen.endswith("gate:/b-failed may be answered again.\n")


def test_a_person_forgets_what_is_old(url: str) -> None:
    status, seen = at_a_terminal("prune", url, "--older-than", "0s", types="y\n")
    assert status == 0
    assert seen.endswith("Records forgotten: 2.\n")
    with_claim = open_store(url)
    assert [entry.run.run for entry in with_claim.scan()] == ["c-abandoned"]
    with_claim.close()


def test_the_doctor_has_a_status(url: str) -> None:
    # The Postgres of the tests does not wait for its disk, which is what the doctor is for.
    fails = {"fsync"} if url.startswith("postgres") else set()
    document = json.loads(done("doctor", url, "--json", status=len(fails)).stdout)
    assert {check["name"] for check in document["checks"] if check["state"] == "fail"} == fails
