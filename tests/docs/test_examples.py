"""Every example runs as a program, away from the checkout, and says what it promised.

An example's docstring ends with a paragraph that starts with `Prints:` and shows, line by
line, what it prints last.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.elsewhere import runs_here


ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if runs_here(path))


def promised(source: str) -> list[str]:
    """The lines that an example of this `source` says it prints last."""
    _, found, lines = (ast.get_docstring(ast.parse(source)) or "").rpartition("Prints:\n")
    return [line.strip() for line in lines.splitlines() if line.strip()] if found else []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = example.read_text(encoding="utf-8")
    expected = promised(source)
    environment = dict(os.environ)
    if "REMIT_POSTGRES_URL" in source:
        environment["REMIT_POSTGRES_URL"] = request.getfixturevalue("postgres_url")

    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert expected, f"{example.name} promises nothing"
    printed = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert printed[-len(expected) :] == expected


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_a_promise_is_read_from_the_docstring() -> None:
    assert promised('"""Title.\n\nPrints:\n\n    one\n    two\n"""\n') == ["one", "two"]
    assert promised('"""Title."""\n') == []
