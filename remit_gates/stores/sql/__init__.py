"""The SQL of the stores lives in files of its own; both dialects name the same statements."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


SCHEMA: Final = 1
"""Version of the tables. A larger one in a database is refused, never guessed at."""

TABLE: Final = "remit_gates"
"""Name of the table unless the user chooses another."""

META: Final = "remit_gates_schema"
"""Name of the table that says which version each store table of a schema has."""


@functools.cache
def statements(dialect: str) -> Mapping[str, str]:
    """The statements of `<dialect>.sql` by name, with `{table}` and `{meta}` still open. Read
    once a process: stores are made for each request."""
    text = importlib.resources.files(__name__).joinpath(f"{dialect}.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({name: _bare(body) for name, body in pairs})


def _bare(body: str) -> str:
    """`body` without its comments, which are for readers and not for servers."""
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip()
