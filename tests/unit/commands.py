"""Runs commands in this process, and makes runs for them in every phase."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest

from remit_gates import Gate, cli


ABANDON = """
import os, sys
from remit_gates import Gate

url, run, namespace, actor = sys.argv[1:]
gate = Gate(url, namespace=namespace)
with gate.passage(run, pause="approve", answer="x", actor=actor):
    os._exit(0)
"""


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit status, output and error output of a command."""
    try:
        status = cli.main(argv)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    out, err = capsys.readouterr()
    return status, out, err


def checked(
    capsys: pytest.CaptureFixture[str], url: str, status: int = 0
) -> dict[str, dict[str, str]]:
    """The checks of `doctor` for `url` by name."""
    ended, out, err = run(capsys, "doctor", url, "--json")
    document = json.loads(out)
    assert ended == status
    assert document["ok"] is (status == 0)
    for check in document["checks"]:
        # What is not as it should be has its mend beside it.
        assert bool(check["mend"]) is (check["state"] != "ok"), check
    assert (err == "") is (status == 0) or "settings" not in err
    return {check["name"]: check for check in document["checks"]}


def failing(checks: dict[str, dict[str, str]]) -> set[str]:
    """The names of those that failed."""
    return {name for name, check in checks.items() if check["state"] == "fail"}


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    """What a command that goes well tells a program."""
    status, out, err = run(capsys, *argv, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def one_line(err: str) -> str:
    assert err.startswith("remit-gates: error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


class Terminal(io.StringIO):
    """A standard input at which somebody sits who types `text`."""

    def isatty(self) -> bool:
        return True


def settle(url: str, name: str, **options: Any) -> None:
    with Gate(url, **options).passage(name, pause="approve", answer="x", actor="ann"):
        pass


def fail(url: str, name: str, **options: Any) -> None:
    gate = Gate(url, **options)
    with (
        pytest.raises(ZeroDivisionError),
        gate.passage(name, pause="approve", answer="x", actor="ann", delivery="msg-1"),
    ):
        raise ZeroDivisionError


def abandon(url: str, name: str, namespace: str = "", actor: str = "bob") -> None:
    """Have a process die in the run, on this host."""
    subprocess.run([sys.executable, "-c", ABANDON, url, name, namespace, actor], check=True)
