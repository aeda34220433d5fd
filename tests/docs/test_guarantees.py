"""A guarantee is listed only with what shows it: every name on the page exists."""

from __future__ import annotations

import re
from pathlib import Path


ROOT = Path(__file__).parents[2]


def test_every_test_that_the_guarantees_name_exists() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named
    assert named <= defined
