"""The inductive step holds over all paths of the production decisions, and would be refuted
if it did not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


pytest.importorskip("crosshair", reason="the prover is not installed")

ROOT = Path(__file__).parents[2]

PROVED = ("consumed", "token", "closed_after", "withdrawn")


def check(*names: str) -> tuple[int, str]:
    """What the prover says of some functions, all in one command: of a function with a
    contract that is only called, it would take the contract on trust."""
    command = [sys.executable, "-m", "crosshair", "check", *names, "--analysis_kind=PEP316"]
    command += ["--per_condition_timeout=60", "--report_all"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_pause_is_consumed_at_most_once_over_all_paths() -> None:
    code, said = check(*(f"tests.proofs.contracts.{name}" for name in PROVED))
    # A condition that ran out of time says something else, or nothing.
    assert said.count("Confirmed over all paths.") == len(PROVED), said
    assert len(said.splitlines()) == len(PROVED), said
    assert code == 0


def test_a_decision_without_the_ledger_is_refuted() -> None:
    code, said = check("tests.proofs.broken_contracts.consumed")
    assert re.search(r"error: false when calling consumed\(.*\(which returns 2\)", said), said
    assert code == 1
