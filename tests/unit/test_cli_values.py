"""What is written on the command line, and what is written back."""

from __future__ import annotations

import argparse
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_gates._cli.values import age, clean, command, key, limit, moment, shown, span, written
from remit_gates._model import RunKey


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("30d", 2_592_000), ("2w", 1_209_600)],
)
def test_an_age(text: str, seconds: float) -> None:
    assert age(text) == (seconds, text)


@pytest.mark.parametrize(
    "text", ["", "10", "m", "-5m", "1.5h", "5 m", "5M", "٣d", "101w2000w9999w"]
)
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        age(text)


@pytest.mark.parametrize("text", ["0", "-1", "10001", "many", "²", ""])
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        limit(text)


@given(st.builds(RunKey, st.text(), st.text(), st.text()))
def test_a_key_comes_back_from_a_shell(run: RunKey) -> None:
    [_, text] = shlex.split(command(["--after", written(run)]))
    assert key(text) == run


@pytest.mark.parametrize("text", ["", "order-17", "[]", '["a","b"]', '["a","b",1]', '"abc"', "{}"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        key(text)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///claims.db",
        "sqlite:////srv/a b/claims.db",
        "memory://",
        "postgresql:///orders",
        "postgresql://app@db.example.org:5432/orders",
    ],
)
def test_a_url_without_a_credential_is_shown(url: str) -> None:
    assert shown(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:hunter2@db/orders",
        "postgresql://app@db/orders?password=hunter2",
        "postgresql://app%3Ahunter2@db/orders",
        "host=db password=hunter2",
        "redis://:hunter2@cache:6379/0",
        "hunter2",
    ],
)
def test_a_url_that_may_hold_one_is_not(url: str) -> None:
    assert shown(url) == "URL"


def test_no_name_commands_a_terminal() -> None:
    assert clean("a\x1b[31m\r\nb\x9b\u202eé☃") == "a\\x1b[31m\\r\\nb\\x9b\\u202eé☃"


def test_a_command_with_what_cannot_be_shown_still_means_the_same() -> None:
    words = ["plain", "a b", "it's", "esc\x1b[31m 'x' \\ \u202e☃"]
    line = command(words)
    assert line.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {line}"],
        capture_output=True,
        check=True,
        text=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert done.stdout.splitlines() == words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1.0, "0s"), (0.4, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"),
     (172_799, "47h"), (172_800, "2d")],
)  # fmt: skip
def test_a_length_of_time(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_moment_is_in_utc() -> None:
    assert moment(1_700_000_000.1234) == "2023-11-14T22:13:20.123Z"
    assert moment(None) is None
