"""What is not gated runs as if this package were not there, and nothing here leaves the
machine, asks anybody, or waits for anybody at its end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit_gates import _supported
from remit_gates.crewai import _versions
from remit_gates.errors import UnsupportedVersion
from tests.adapters import hermetic


ROOT = Path(__file__).resolve().parents[2]


def traced(*args: str) -> Any:
    """What `tests.adapters.ungated` writes, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.adapters.ungated", *args],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_ungated_flows_are_what_they_were() -> None:
    stock, beside = traced(), traced("hooked")
    assert beside == stock
    results, calls, steps, attempts = stock
    assert len(calls) > 20
    assert ["clear_pending_feedback", ["str"], {}] in calls
    assert all(steps)
    assert results[2] == "HumanFeedbackPending", "stock serves the duplicate"
    assert "unexpected keyword" in results[3]
    assert attempts == []


def test_nothing_left_this_machine() -> None:
    """So far in this process; the order of tests is random."""
    assert hermetic.attempts == []


@pytest.mark.parametrize("host", ["telemetry.crewai.com", "10.1.2.3", b"example.com"])
def test_the_guard_sees_who_would_leave(host: Any) -> None:
    before = len(hermetic.attempts)
    with pytest.raises(hermetic.LeftTheMachineError):
        socket.getaddrinfo(host, 443)
    with pytest.raises(hermetic.LeftTheMachineError):
        socket.create_connection((host, 443))
    with socket.socket() as out, pytest.raises(hermetic.LeftTheMachineError):
        out.connect((host, 443))
    with pytest.raises(hermetic.LeftTheMachineError):
        input("?")
    assert len(hermetic.attempts) == before + 4
    del hermetic.attempts[before:]


def test_the_guard_lets_the_machine_talk_to_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    assert hermetic.attempts == []


def test_what_crewai_stores_lies_in_the_tests_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crewai.flow.flow import Flow

    monkeypatch.chdir(tmp_path)
    assert Flow().memory is not None
    assert [*tmp_path.iterdir()] == []
    assert (Path(os.environ["REMIT_TEST_HOME"]) / "crewai" / "memory").is_dir()


@pytest.mark.parametrize("other", ["1.15.1", "1.14.9", "2.0.0", "2.0.0rc1"])
def test_a_release_that_is_not_known_is_not_wrapped(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_supported, "version", lambda name: other)
    with pytest.raises(UnsupportedVersion, match=f"CrewAI {other} is installed"):
        _versions.hooked()


@pytest.mark.parametrize("gone", ["HOOKED", "NEEDED"])
def test_a_release_without_a_hook_is_not_wrapped(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_versions, gone, ("no_such_name",))
    with pytest.raises(UnsupportedVersion, match=r"has no .*Flow\.no_such_name"):
        _versions.hooked()


def test_what_is_wrapped_keeps_its_signature() -> None:
    import inspect

    from crewai.flow.runtime import Flow

    from remit_gates.crewai._versions import HOOKED

    for name in HOOKED:
        wrapped = getattr(Flow, name)
        assert inspect.signature(wrapped) == inspect.signature(wrapped.__wrapped__)
        assert inspect.iscoroutinefunction(wrapped) == name.endswith("_async")
