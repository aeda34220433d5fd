"""Documents and examples of a framework that has an environment of its own run there, with
its tests (`tools/releases.py`), and not where it is absent."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final


ELSEWHERE: Final = ("crewai",)


def runs_here(path: Path) -> bool:
    """Whether what the document or example at `path` is about is installed."""
    about = path.stem.partition("_")[0]
    return about not in ELSEWHERE or importlib.util.find_spec(about) is not None
