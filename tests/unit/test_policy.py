"""A policy that exists is valid, and its message says what would be."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from remit_gates._policy import LONGEST, Policy
from remit_gates.errors import UsageError


CHOICES = {
    "on_conflict": ("refuse", "wait"),
    "on_failure": ("hold", "retry"),
    "on_abandoned": ("refuse", "serve"),
    "on_store_error": ("refuse", "serve"),
    "answers": ("any", "bound"),
    "scope": ("resume", "run"),
}


def test_the_defaults_are_the_careful_ones() -> None:
    policy = dataclasses.asdict(Policy())
    assert (policy.pop("lease"), policy.pop("wait_timeout")) == (30.0, 60.0)
    assert policy.pop("record_answers") is False
    assert policy == {name: allowed[0] for name, allowed in CHOICES.items()}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_one_of_its_set(name: str) -> None:
    for value in CHOICES[name]:
        made: Any = Policy(**{name: value})  # type: ignore[arg-type]
        assert getattr(made, name) == value
    for wrong in ("", "sometimes", None, True, 1):
        with pytest.raises(UsageError, match=f"{name}.*{CHOICES[name][0]}.*{CHOICES[name][1]}"):
            Policy(**{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_to_record_answers_is_a_yes_or_a_no(value: Any) -> None:
    assert Policy(record_answers=True).record_answers
    with pytest.raises(UsageError, match=r"record_answers=.*True or False"):
        Policy(record_answers=value)


@pytest.mark.parametrize("value", [1, 0.001, 3600.0])
def test_a_lease_is_a_positive_number_of_seconds(value: float) -> None:
    assert Policy(lease=value).lease == value


@pytest.mark.parametrize("value", [0, 0.0, -1, math.nan, math.inf, -math.inf, True, "30", None])
def test_a_lease_is_nothing_else(value: Any) -> None:
    with pytest.raises(UsageError, match=r"Policy\(lease=.*greater than 0"):
        Policy(lease=value)


@pytest.mark.parametrize("name", ["lease", "wait_timeout"])
def test_no_number_of_seconds_is_too_large_for_a_store(name: str) -> None:
    longest: Any = {name: LONGEST}
    assert getattr(Policy(**longest), name) == 1e9
    for value in (1_000_000_001, 10**400):
        with pytest.raises(UsageError, match=rf"{name}=.*at most 1e\+09"):
            Policy(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, 0.0, 0.5, 60])
def test_a_timeout_may_be_zero(value: float) -> None:
    assert Policy(wait_timeout=value).wait_timeout == value


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf, False, "60", None])
def test_a_timeout_is_nothing_else(value: Any) -> None:
    with pytest.raises(UsageError, match=r"Policy\(wait_timeout=.*at least 0"):
        Policy(wait_timeout=value)


def test_a_policy_is_a_value() -> None:
    assert Policy(lease=5) == Policy(lease=5.0)
    assert hash(Policy()) == hash(Policy())
    with pytest.raises(dataclasses.FrozenInstanceError):
        Policy().lease = 5.0  # type: ignore[misc]


def test_a_policy_names_what_it_chooses() -> None:
    with pytest.raises(TypeError):
        Policy(30.0)  # type: ignore[call-arg]
