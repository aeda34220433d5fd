"""A release that is not known to work is refused, and so is one without what is hooked into."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from remit_gates import _supported
from remit_gates._supported import Supported, numbers
from remit_gates.errors import MissingExtra, UnsupportedVersion


FLOWS = Supported("Flows", "flows-slim", "flows", (1, 15, 2), 3)
LATER = "Install a supported Flows, or a newer remit-gates."


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The distributions that are installed, with their versions."""
    distributions: dict[str, str] = {}

    def version(name: str) -> str:
        try:
            return distributions[name]
        except KeyError:
            raise PackageNotFoundError(name) from None

    monkeypatch.setattr(_supported, "version", version)
    return distributions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.15.2", (1, 15, 2)),
        ("2.0", (2, 0, 0)),
        ("3", (3, 0, 0)),
        ("1.3.0rc1", (1, 3, 0)),
        ("1.107.10.post2", (1, 107, 10)),
        ("unknown", (0, 0, 0)),
    ],
)
def test_a_version_is_its_first_three_numbers(text: str, expected: tuple[int, int, int]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize("text", ["1.15.2", "1.15.10", "1.16", "2.0.0rc1", "2.99.0"])
def test_a_supported_release_is_told(text: str, found: dict[str, str]) -> None:
    found["flows-slim"] = text
    assert FLOWS.installed() == numbers(text)
    assert FLOWS.text() == text


@pytest.mark.parametrize("text", ["1.15.1", "1.9.9", "0.99", "3.0.0rc1", "3.0", "10.0"])
def test_another_release_is_refused(text: str, found: dict[str, str]) -> None:
    found["flows-slim"] = text
    with pytest.raises(UnsupportedVersion) as refused:
        FLOWS.installed()
    assert str(refused.value) == (
        f"Flows {text} is installed, and this release gates 1.15.2 up to, but not including, 3."
        f" Nothing was wrapped. {LATER}"
    )


def test_the_oldest_release_may_have_two_numbers(found: dict[str, str]) -> None:
    flows = Supported("Flows", "flows", "flows", (0, 8), 2)
    found["flows"] = "0.8.0"
    assert flows.installed() == (0, 8, 0)
    found["flows"] = "0.7.9"
    with pytest.raises(UnsupportedVersion, match=r"gates 0\.8 up to"):
        flows.installed()


def test_what_is_missing_is_installed_by_its_extra(found: dict[str, str]) -> None:
    for ask in (FLOWS.text, FLOWS.installed):
        with pytest.raises(MissingExtra) as refused:
            ask()
        assert str(refused.value) == (
            "Flows is not installed. Install it with: pip install 'remit-gates[flows]'"
        )


def test_a_version_is_looked_up_once_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def version(name: str) -> str:
        asked.append(name)
        if len(asked) == 1:
            raise PackageNotFoundError(name)
        return "1.16"

    monkeypatch.setattr("remit_gates._supported.metadata.version", version)
    _supported.version.cache_clear()
    try:
        with pytest.raises(MissingExtra):
            FLOWS.installed()
        for _ in range(3):
            assert FLOWS.installed() == (1, 16, 0)
    finally:
        _supported.version.cache_clear()
    assert asked == ["flows-slim"] * 2


class Flow:
    __private_attributes__: ClassVar = {"_pending": None}

    def resume(self) -> None: ...


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, found: dict[str, str]) -> str:
    """A module of the framework, which has a class `Flow` and a function `run`."""
    found["flows-slim"] = "1.20.0"
    engine: Any = SimpleNamespace(Flow=Flow, run=Flow.resume)
    monkeypatch.setitem(sys.modules, "flows_engine", engine)
    return "flows_engine"


def test_a_class_with_all_that_is_hooked_is_given(module: str) -> None:
    assert FLOWS.hooked_class(module, "Flow", ("resume",)) is Flow
    assert FLOWS.hooked_class(module, "Flow", ("resume",), ("_pending",)) is Flow


@pytest.mark.parametrize(
    ("name", "methods", "private", "lacks"),
    [
        ("Flow", ("resume", "fork"), (), "flows_engine.Flow.fork"),
        ("Flow", ("resume",), ("_gone",), "flows_engine.Flow._gone"),
        ("NoSuch", ("resume",), (), "flows_engine.NoSuch"),
        ("run", (), (), "flows_engine.run"),
    ],
)
def test_a_class_that_lacks_something_is_refused(
    module: str, name: str, methods: tuple[str, ...], private: tuple[str, ...], lacks: str
) -> None:
    with pytest.raises(UnsupportedVersion) as refused:
        FLOWS.hooked_class(module, name, methods, private)
    assert str(refused.value) == (
        f"Flows 1.20.0 has no {lacks}, which the gate hooks into. Nothing was wrapped. {LATER}"
    )
