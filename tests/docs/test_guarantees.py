"""What a page says is listed only with what shows it: every test that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["guarantees.md", "cost.md"])
def test_every_test_that_a_page_names_exists(name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named
    assert named <= defined
