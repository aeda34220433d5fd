"""What the methods of a declared flow call."""

from __future__ import annotations

from typing import Any


def draft(*_: Any, **__: Any) -> str:
    return "a text"


def publish(*args: Any, **__: Any) -> str:
    return "published"
