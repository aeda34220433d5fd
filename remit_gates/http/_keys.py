"""A request's `Idempotency-Key` is its delivery id: the name of the message that carries
an answer, the same each time that the message is sent.

The header is that of draft-ietf-httpapi-idempotency-key-header: a string of RFC 8941. Keys
without its quotes are taken as well, since that is what most clients send.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import HTTPConnection, Request

from remit_gates.http._problems import InvalidRequest


HEADER: Final = "Idempotency-Key"

LONGEST: Final = 255
"""The longest key that is taken, in characters."""

_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"(?:;[ -~]*)?')
_BARE: Final = re.compile(r"[!#-+\--:<-\[\]-~]+")  # no space, quote, backslash, comma, semicolon


def idempotency_key(request: Request) -> str:
    """The delivery id of a request that must have one: a dependency for FastAPI, and a
    function of a request elsewhere.

    Raises:
        InvalidRequest: There is no `Idempotency-Key`, or it is no key (400).
    """
    key = optional_idempotency_key(request)
    if key is None:
        raise InvalidRequest(
            f"This needs the header {HEADER}: a name for the request, such as a UUID, that"
            " is the same each time that it is sent. Nothing was done.",
            name="idempotency-key-missing",
        )
    return key


def optional_idempotency_key(request: Request) -> str | None:
    """The delivery id of a request that may have one, as `idempotency_key` gives it.

    Raises:
        InvalidRequest: There is an `Idempotency-Key`, and it is no key (400).
    """
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    key = parse(given[0]) if len(given) == 1 else None
    if key is None:
        raise InvalidRequest(
            f"{HEADER} is one string of 1 to {LONGEST} visible ASCII characters, in double"
            " quotes. Nothing was done.",
            name="idempotency-key-invalid",
        )
    mark(request, key)
    return key


def parse(text: str) -> str | None:
    """The key that the header's value `text` holds; None if it holds none."""
    text = text.strip(" ")
    if quoted := _QUOTED.fullmatch(text):
        key = re.sub(r'\\(["\\])', r"\1", quoted[1])
    elif _BARE.fullmatch(text):
        key = text
    else:
        return None
    return key if key.strip() and len(key) <= LONGEST else None


def mark(connection: HTTPConnection, delivery: str) -> None:
    """Note the delivery id of a request, for when an error has to be told."""
    connection.state.remit_delivery = delivery


def marked(connection: HTTPConnection) -> str | None:
    """The delivery id that was noted."""
    return getattr(connection.state, "remit_delivery", None)
