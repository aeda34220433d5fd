"""An answer as JSON text: whatever it is, and never too long."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections import ChainMap
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_gates._transcript import LONGEST, transcript


@dataclasses.dataclass
class Decision:
    approved: bool
    when: datetime.date


class Colour(enum.Enum):
    RED = "red"


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"approved": True, "by": Colour.RED}


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("yes", '"yes"'),
        ({"approved": True, "amount": 10}, '{"approved": true, "amount": 10}'),
        ((1, 2.5), "[1, 2.5]"),
        (Decision(True, datetime.date(2026, 1, 2)), '{"approved": true, "when": "2026-01-02"}'),
        (Model(), '{"approved": true, "by": "red"}'),
        (Colour.RED, '"red"'),
        ({"b", "a"}, '["a", "b"]'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (uuid.UUID(int=0), '"00000000-0000-0000-0000-000000000000"'),
        (PurePosixPath("/a"), '"/a"'),
        (ChainMap({"a": 1}), '{"a": 1}'),
        ({"by": Odd()}, '{"by": {"repr": "<odd>"}}'),
        (Odd(), '{"repr": "<odd>"}'),
        (Broken(), '{"repr": "<Broken>"}'),
        (float("nan"), '{"repr": "nan"}'),
        ({(1, 2): 3}, '{"repr": "{(1, 2): 3}"}'),
        ("\ud800\x00", '"\\ud800\\u0000"'),
    ],
)
def test_what_is_written(answer: Any, text: str) -> None:
    assert transcript(answer) == text


def test_what_holds_itself_is_written() -> None:
    answer: list[Any] = []
    answer.append(answer)
    assert transcript(answer) == '{"repr": "[[...]]"}'


def test_a_long_answer_is_cut_and_says_so() -> None:
    whole = "x" * (LONGEST - 2)
    assert json.loads(transcript(whole)) == whole
    cut = json.loads(transcript("x" * LONGEST))
    assert cut == {"cut": '"' + "x" * (LONGEST - 1), "length": LONGEST + 2}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_json_comes_back(answer: Any) -> None:
    assert json.loads(transcript(answer)) == answer
