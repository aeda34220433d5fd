"""A ticket is text that names one pause of one run, and says whether it was tampered with.

It is the same text for the same pause and key, it is made of letters that need no quoting
in a URL, and it is short whatever the run is called. It hides nothing: whoever has it can
read the names in it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from remit_gates.errors import UsageError


LONGEST: Final = 199
"""Characters of a ticket at the most."""

Secret = str | bytes | Sequence[str | bytes] | None
"""What tickets are signed with. Of several keys the first one signs, and each verifies."""

_SIGNED: Final = b"\x02"
_PLAIN: Final = b"\x01"
_CHECK: Final = {_SIGNED: 32, _PLAIN: 8}
"""The kinds of ticket, of which the first byte tells, and how many bytes guard each."""

_HASHED: Final = 0xFD
_UUID: Final = 0xFE
_HEX: Final = 0xFF
_UUID_FORM: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX_FORM: Final = re.compile(r"[0-9a-f]{32}")

_REFUSED: Final = (
    "This is not a ticket of this application: it was cut short, altered, signed with"
    " another key, or made for something else. Nothing was read or changed. To get the"
    " tickets of what waits now, ask for them again."
)


@dataclass(frozen=True, slots=True)
class Hashed:
    """A name that is too long for a ticket, which carries a digest of it instead."""

    digest: bytes

    @staticmethod
    def of(name: str) -> Hashed:
        """What stands for `name`."""
        return Hashed(hashlib.sha256(_bytes(name)).digest()[:20])


Name = str | Hashed


@dataclass(frozen=True, slots=True)
class Named:
    """What a ticket says.

    Attributes:
        framework: The adapter whose run it is.
        namespace: The partition of the store.
        run: The run.
        pause: The pause.
        generation: How many questions were asked before in the place that `pause` names.
        shown: A short digest of what a person was asked; empty where it has none.
    """

    framework: str
    namespace: Name
    run: Name
    pause: str
    generation: int = 0
    shown: bytes = b""

    def is_in(self, namespace: str) -> bool:
        """Whether it names a run in this partition."""
        return _is(self.namespace, namespace)

    def is_of(self, run: str) -> bool:
        """Whether it names a pause of this run."""
        return _is(self.run, run)


def keys(secret: Secret) -> tuple[bytes, ...]:
    """The keys in `secret`, the signing one first.

    Raises:
        UsageError: A key is empty, or there is none in a sequence.
    """
    if secret is None:
        return ()
    given = [secret] if isinstance(secret, (str, bytes)) else [*secret]
    out = tuple(_bytes(key) if isinstance(key, str) else bytes(key) for key in given)
    if not out or not all(out):
        raise UsageError("secret= is one key that is not empty, or several. Nothing was made.")
    return out


def seal(named: Named, secret: tuple[bytes, ...]) -> str:
    """The ticket that says `named`, signed with the first key of `secret`, if there is one.

    Raises:
        UsageError: The name of its pause is too long.
    """
    kind = _SIGNED if secret else _PLAIN
    framework, pause = _packed(named.framework), _packed(named.pause)
    mark = bytes((len(named.shown), *_counted(named.generation))) + named.shown
    scope = [_packed(named.namespace), _packed(named.run)]
    names = [named.namespace, named.run]
    for _ in range(3):
        body = kind + mark + framework + b"".join(scope) + pause
        text = _text(body + _guard(body, secret[0] if secret else None))
        if len(text) <= LONGEST:
            return text
        # They are the user's own, and as long as they like.
        longer = max((0, 1), key=lambda at: len(scope[at]))
        name = names[longer]
        if isinstance(name, str):
            scope[longer] = _packed(Hashed.of(name))
    raise UsageError(
        f"The name of a pause has {len(named.pause)} characters, which is too long for a"
        " ticket. Nothing was made. Answer by its name instead."
    )


def unseal(text: object, secret: tuple[bytes, ...]) -> Named:
    """What the ticket `text` says.

    Raises:
        UsageError: It is no ticket that was made with one of these keys; or, where there
            is no key, it is damaged or was signed.
    """
    try:
        named = _unsealed(text, secret)
    except (ValueError, IndexError, TypeError, AttributeError):
        named = None
    if named is None:
        # Which of its faults it was is nobody's business.
        raise UsageError(_REFUSED)
    return named


def _unsealed(text: object, secret: tuple[bytes, ...]) -> Named | None:
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    kind = data[:1]
    if kind != (_SIGNED if secret else _PLAIN) or _text(data) != text:
        return None
    body, guard = data[: -_CHECK[kind]], data[-_CHECK[kind] :]
    expected = [_guard(body, key) for key in secret or (None,)]
    # Every key is tried, so that the time does not tell which one fits.
    fits = [hmac.compare_digest(guard, found) for found in expected]
    if True not in fits:
        return None
    reader = _Reader(body, 1)
    size, generation = reader.byte(), reader.count()
    shown = reader.take(size)
    framework, namespace, run, pause = (reader.name() for _ in range(4))
    if reader.at != len(body) or isinstance(framework, Hashed) or isinstance(pause, Hashed):
        return None
    return Named(framework, namespace, run, pause, generation, shown)


def _guard(body: bytes, key: bytes | None) -> bytes:
    """What shows that `body` is as it was made."""
    if key is None:
        return hashlib.sha256(b"remit-gates ticket " + body).digest()[: _CHECK[_PLAIN]]
    return hmac.new(key, b"remit-gates ticket " + body, hashlib.sha256).digest()


def _is(name: Name, given: str) -> bool:
    return name == (Hashed.of(given) if isinstance(name, Hashed) else given)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _counted(number: int) -> tuple[int, ...]:
    """`number` in as many bytes as it needs, seven bits in each, the last one first."""
    out = []
    while number > 0x7F:
        out.append(0x80 | (number & 0x7F))
        number >>= 7
    return (*out, number)


def _packed(name: Name) -> bytes:
    """`name` in few bytes: the UUIDs and digests that names are made of have half as many
    as letters."""
    if isinstance(name, Hashed):
        return bytes((_HASHED,)) + name.digest
    parts = name.split(":")
    if len(parts) > _HASHED - 1:
        return b"\0" * LONGEST
    out = bytes((len(parts),))
    for part in parts:
        if _UUID_FORM.fullmatch(part):
            out += bytes((_UUID,)) + bytes.fromhex(part.replace("-", ""))
        elif _HEX_FORM.fullmatch(part):
            out += bytes((_HEX,)) + bytes.fromhex(part)
        else:
            data = _bytes(part)
            out += bytes((min(len(data), LONGEST),)) + data
    return out


class _Reader:
    """Reads what `_packed` and `_counted` wrote. What is missing raises `IndexError`."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise IndexError(size)
        self.at += size
        return found

    def count(self) -> int:
        number, shift = 0, 0
        while (found := self.byte()) > 0x7F:
            number |= (found & 0x7F) << shift
            shift += 7
        return number | found << shift

    def name(self) -> Name:
        size = self.byte()
        if size == _HASHED:
            return Hashed(self.take(20))
        return ":".join(self._part() for _ in range(size))

    def _part(self) -> str:
        size = self.byte()
        if size not in (_UUID, _HEX):
            return self.take(size).decode(errors="surrogatepass")
        text = self.take(16).hex()
        if size == _HEX:
            return text
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
