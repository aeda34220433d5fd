"""A ticket is short, safe in a URL, and says what it was made to say or nothing."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_gates._ticket import LONGEST, Hashed, Named, keys, seal, unseal
from remit_gates.errors import UsageError


PAUSE = f"{uuid.UUID(int=7)}:{'0a' * 16}:3"
TICKET = Named("langgraph", "", "order-17", PAUSE)

TEXTS = st.text(max_size=300) | st.uuids().map(str) | st.sampled_from(["", ":", "a:b:", "\ud800"])
PAUSES = st.tuples(st.uuids().map(str), st.from_regex(r"[0-9a-f]{32}|\d{1,3}", fullmatch=True)).map(
    ":".join
)
NAMED = st.builds(
    Named, st.sampled_from(["langgraph", "crewai"]), TEXTS, TEXTS, PAUSES,
    st.integers(0, 10**6), st.binary(max_size=8),
)  # fmt: skip
SECRETS = st.sampled_from([(), (b"key",), (b"new", b"old")])


@given(NAMED, SECRETS)
def test_it_says_what_it_was_made_to_say(named: Named, secret: tuple[bytes, ...]) -> None:
    text = seal(named, secret)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,199}", text)
    assert LONGEST < 200

    back = unseal(text, secret)

    assert (back.framework, back.pause) == (named.framework, named.pause)
    assert (back.generation, back.shown) == (named.generation, named.shown)
    for found, was in ((back.run, named.run), (back.namespace, named.namespace)):
        assert found in (was, Hashed.of(str(was)))
    assert back.is_of(str(named.run))
    assert back.is_in(str(named.namespace))
    assert not back.is_of(f"{named.run}x")
    assert not back.is_in(f"{named.namespace}x")
    # Read and written again, it is the same text.
    assert seal(back, secret) == text


def test_a_name_that_fits_can_be_read() -> None:
    assert unseal(seal(TICKET, ()), ()) == TICKET
    for run in (str(uuid.UUID(int=9)), "x" * 40):
        named = Named("langgraph", "shop", run, PAUSE, 2, b"12345678")
        assert unseal(seal(named, (b"key",)), (b"key",)) == named


@pytest.mark.parametrize(
    ("namespace", "run", "hashed"),
    [
        ("n" * 20, "r" * 60, [False, True]),
        ("n" * 80, "r", [True, False]),
        ("n" * 80, "r" * 90, [True, True]),
    ],
)
def test_of_two_names_the_longer_one_is_hashed_first(
    namespace: str, run: str, hashed: list[bool]
) -> None:
    named = Named("langgraph", namespace, run, PAUSE)
    back = unseal(seal(named, (b"key",)), (b"key",))
    assert [isinstance(name, Hashed) for name in (back.namespace, back.run)] == hashed
    assert back.is_in(namespace)
    assert back.is_of(run)


def test_the_name_of_a_pause_has_to_fit() -> None:
    with pytest.raises(UsageError, match="too long"):
        seal(Named("crewai", "", "r", "p" * 200), ())
    with pytest.raises(UsageError, match="too long"):
        seal(Named("crewai", "", "r", ":" * 400), ())


@pytest.mark.parametrize("secret", [(), (b"key",)])
def test_changed_anywhere_it_is_none(secret: tuple[bytes, ...]) -> None:
    text = seal(TICKET, secret)
    for place in range(len(text)):
        for other in {"A", "B", "_", "=", "+", "é"} - {text[place]}:
            with pytest.raises(UsageError):
                unseal(text[:place] + other + text[place + 1 :], secret)


@pytest.mark.parametrize("secret", [(), (b"key",)])
def test_cut_short_or_added_to_it_is_none(secret: tuple[bytes, ...]) -> None:
    text = seal(TICKET, secret)
    for wrong in (*(text[:size] for size in range(len(text))), *(text + end for end in "A= \n")):
        with pytest.raises(UsageError):
            unseal(wrong, secret)


@given(st.text(max_size=250) | st.binary(max_size=250) | st.none() | st.integers(), SECRETS)
def test_whatever_else_it_is_it_is_none(text: Any, secret: tuple[bytes, ...]) -> None:
    with pytest.raises(UsageError, match="not a ticket of this application"):
        unseal(text, secret)


def test_only_a_key_makes_a_signed_one() -> None:
    plain, signed = seal(TICKET, ()), seal(TICKET, (b"key",))
    for text, secret in ((plain, (b"key",)), (signed, ()), (signed, (b"other",))):
        with pytest.raises(UsageError) as refused:
            unseal(text, secret)
        # Which of its faults it was does not show, nor what is in it.
        assert str(refused.value).startswith("This is not a ticket of this application: it was")
        assert refused.value.__cause__ is refused.value.__context__ is None
        assert "order-17" not in str(refused.value)


def test_a_plain_guard_does_not_pass_for_a_signature() -> None:
    """Nobody makes a signed ticket of what they can compute themselves."""
    plain = seal(TICKET, ())
    with pytest.raises(UsageError):
        unseal("Ag" + plain[2:], (b"key",))


def test_the_first_key_signs_and_every_key_verifies() -> None:
    old, new = (b"old",), (b"new", b"old")
    assert unseal(seal(TICKET, old), new) == TICKET
    assert seal(TICKET, new) == seal(TICKET, (b"new",)) != seal(TICKET, old)
    with pytest.raises(UsageError):
        unseal(seal(TICKET, old), (b"new",))


@pytest.mark.parametrize(
    ("secret", "found"),
    [
        (None, ()),
        ("a", (b"a",)),
        (b"a", (b"a",)),
        (["new", b"old"], (b"new", b"old")),
    ],
    ids=repr,
)
def test_a_secret_is_one_key_or_several(secret: Any, found: tuple[bytes, ...]) -> None:
    assert keys(secret) == found


@pytest.mark.parametrize("secret", ["", b"", [], ["a", ""]], ids=repr)
def test_an_empty_key_is_a_mistake(secret: Any) -> None:
    with pytest.raises(UsageError, match="secret="):
        keys(secret)
