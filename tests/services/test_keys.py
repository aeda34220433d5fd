"""Which headers are idempotency keys, and which key they are."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from remit_gates.http import InvalidRequest, idempotency_key, optional_idempotency_key
from remit_gates.http._keys import LONGEST, marked, parse


def request(*values: str) -> Request:
    headers = [(b"idempotency-key", value.encode("latin-1")) for value in values]
    return Request({"type": "http", "headers": headers})


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('"8e03978e-40d5-43dd-bc93-6894a57f9324"', "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        (' "a" ', "a"),
        ('"a b"', "a b"),
        (r'"a\"b\\c"', r"a\"b\c".replace('\\"', '"')),
        ('"a";version=1', "a"),
        ("a:b/c=d+e_f~g.h", "a:b/c=d+e_f~g.h"),
        (f'"{"k" * LONGEST}"', "k" * LONGEST),
        ("k" * LONGEST, "k" * LONGEST),
    ],
)
def test_a_key(value: str, key: str) -> None:
    assert parse(value) == key
    one = request(value)
    assert idempotency_key(one) == key
    assert marked(one) == key


@pytest.mark.parametrize(
    "value",
    [
        "",
        '""',
        '"  "',
        '"',
        '"a',
        'a"',
        '"a"b',
        'a"b',
        "a b",
        "a, b",
        '"a", "b"',
        r'"a\b"',
        r"a\b",
        '"\xe9"',
        "\xe9",
        '"a\tb"',
        "a\tb",
        "a\x00",
        "k" * (LONGEST + 1),
        f'"{"k" * (LONGEST + 1)}"',
    ],
)
@pytest.mark.parametrize("reader", [idempotency_key, optional_idempotency_key])
def test_no_key(value: str, reader: object) -> None:
    assert callable(reader)
    with pytest.raises(InvalidRequest) as raised:
        reader(request(value))

    assert (raised.value.http_status, raised.value.name) == (400, "idempotency-key-invalid")
    assert not value.strip(' "') or value not in str(raised.value)


def test_two_keys_are_none() -> None:
    with pytest.raises(InvalidRequest) as raised:
        idempotency_key(request("a", "a"))

    assert raised.value.name == "idempotency-key-invalid"


def test_without_a_key_one_is_required_or_not() -> None:
    with pytest.raises(InvalidRequest) as raised:
        idempotency_key(request())

    assert (raised.value.http_status, raised.value.name) == (400, "idempotency-key-missing")
    assert optional_idempotency_key(request()) is None
    assert marked(request()) is None
