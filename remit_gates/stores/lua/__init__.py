"""The Lua of the Redis store lives in files of its own: one script an operation, and each
looks at one key and at the server's clock, so that a cluster runs it where the key is."""

from __future__ import annotations

import hashlib
import importlib.resources
from dataclasses import dataclass
from functools import cache
from typing import Final


SCHEMA: Final = 1
"""Version of what is in a hash. A larger one in a database is refused, never guessed at."""

PREFIX: Final = "remit_gates"
"""How every key begins unless the user chooses otherwise."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script as it is sent, and the name under which a server that had it knows it."""

    text: bytes
    sha: bytes


@cache
def script(name: str) -> Script:
    """The script of `<name>.lua`, without its comments, which are for readers."""
    text = importlib.resources.files(__name__).joinpath(f"{name}.lua").read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    body = "\n".join(line for line in lines if line and not line.startswith("--")).encode()
    return Script(body, hashlib.sha1(body, usedforsecurity=False).hexdigest().encode())
