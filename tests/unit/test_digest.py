"""Equal answers to one pause have equal digests, and only they."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import pathlib
import types
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_gates._digest import digest


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.Enum):
    RED = "red"


class Level(str, enum.Enum):
    RED = "red"


class Count(enum.IntEnum):
    ONE = 1


@dataclass
class Refund:
    amount: int
    notes: tuple[str, ...] = ()


@dataclass
class Payout:
    amount: int
    notes: tuple[str, ...] = ()


class Model:
    """What a pydantic model looks like from here."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class OtherModel(Model):
    pass


class Opaque:
    pass


class Parts(enum.Flag):
    A = 1
    B = 2
    C = 4


class Broken:
    """A model that cannot be written."""

    def model_dump(self) -> dict[str, Any]:
        raise RuntimeError("broken")


@dataclass
class Unset:
    amount: int = field(init=False)


def of(answer: Any) -> str | None:
    return digest(answer, "order-17", "p1")


UTC = datetime.timezone.utc

EQUAL = {
    "order of a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "order of a nested dict": ([{"a": {"x": 1, "y": 2}}], [{"a": {"y": 2, "x": 1}}]),
    "another mapping": ({"a": 1}, types.MappingProxyType({"a": 1})),
    "an ordered dict": ({"a": 1, "b": 2}, collections.OrderedDict([("b", 2), ("a", 1)])),
    "keys of several types": ({1: "a", "1": "b"}, {"1": "b", 1: "a"}),
    "a tuple": ([1, [2, 3]], (1, (2, 3))),
    "a set": ({"a", "b", "c"}, frozenset({"c", "b", "a"})),
    "bytes": (b"ab", bytearray(b"ab")),
    "a memoryview": (b"ab", memoryview(b"ab")),
    "a dataclass": (Refund(1, ("a",)), Refund(1, ("a",))),
    "a model": (Model(a=1, b=(2,)), Model(b=[2], a=1)),
    "an enum": (Colour.RED, Colour("red")),
    "not a number": (float("nan"), float("nan")),
    "half a surrogate": ("\ud800", "\ud800"),
    "a path": (pathlib.PurePosixPath("a/b"), pathlib.PurePosixPath("a") / "b"),
}

DIFFERENT: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    "",
    "1",
    "red",
    "None",
    "\u00e9",
    "e\u0301",
    float("nan"),
    float("inf"),
    0.5,
    [],
    [[]],
    [1],
    [1, 2],
    [2, 1],
    {},
    {"a": 1},
    {"a": "1"},
    {"b": 1},
    {1: "a"},
    {"1": "a"},
    {"a": {"b": 1}},
    set(),
    {1},
    {"1"},
    b"",
    b"1",
    Colour.RED,
    Colour.BLUE,
    Size.RED,
    Level.RED,
    Count.ONE,
    Parts.A,
    Parts.A | Parts.B,
    Parts.A | Parts.C,
    datetime.date(2026, 1, 2),
    datetime.datetime(2026, 1, 2),  # noqa: DTZ001
    datetime.datetime(2026, 1, 2, tzinfo=UTC),
    datetime.time(1, 2),
    datetime.timedelta(days=1),
    decimal.Decimal(1),
    uuid.UUID(int=1),
    pathlib.PurePosixPath("1"),
    Refund(1),
    Refund(2),
    Payout(1),
    Model(amount=1),
    Model(amount=2),
    OtherModel(amount=1),
    {"map": []},
    {"set": []},
    {"bytes": "31"},
    {"enum": ["Colour", "RED"]},
    {"date": "2026-01-02"},
    {"object": "Refund", "fields": {"amount": 1, "notes": []}},
]


@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL.keys())
def test_equal_answers_have_equal_digests(one: Any, other: Any) -> None:
    assert of(one) is not None
    assert of(one) == of(other)


def test_different_answers_have_different_digests() -> None:
    digests = [of(answer) for answer in DIFFERENT]
    assert None not in digests
    clash = [
        (DIFFERENT[first], DIFFERENT[second])
        for first in range(len(digests))
        for second in range(first)
        if digests[first] == digests[second]
    ]
    assert clash == []


def recursive() -> Any:
    answer: list[Any] = []
    answer.append(answer)
    return answer


@pytest.mark.parametrize(
    "answer",
    [
        Opaque(),
        [Opaque()],
        {"a": {"b": Opaque()}},
        {Opaque(): 1},
        Refund,
        Model,
        len,
        recursive(),
        Unset(),
        Broken(),
    ],
    ids=[
        "object",
        "in a list",
        "in a dict",
        "as a key",
        "dataclass",
        "class",
        "function",
        "itself",
        "a field that is not set",
        "its own error",
    ],
)
def test_an_answer_without_a_canonical_form_has_no_digest(answer: Any) -> None:
    assert of(answer) is None


def test_a_digest_belongs_to_its_run_and_pause() -> None:
    places = [("r", "p"), ("r", "q"), ("s", "p"), ("rp", ""), ("", "rp"), ("1:r", "p")]
    places += [("\ud800", "p"), ("r", "\ud800")]  # no text, yet a possible name
    assert len({digest("yes", run, pause) for run, pause in places}) == len(places)


def test_a_digest_is_the_same_in_every_release() -> None:
    assert of({"approved": True, "amount": 10}) == "8c26e27ab31e4e1bbaa1a49798bf8d81"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    """`value` with its dicts the other way round and its lists as tuples."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return tuple(shuffled(item) for item in value)
    return value


@given(JSON)
def test_any_json_has_a_digest_whatever_its_order(answer: Any) -> None:
    assert of(answer) is not None
    assert of(answer) == of(shuffled(answer))


@given(JSON, JSON)
def test_any_two_different_answers_have_different_digests(one: Any, other: Any) -> None:
    # JSON's own text tells `1` from `1.0` and from `true`, which Python's `==` does not.
    assert (of(one) == of(other)) == (repr_of(one) == repr_of(other))


def repr_of(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{sorted((key, repr_of(item)) for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{[repr_of(item) for item in value]}]"
    return repr(value)
