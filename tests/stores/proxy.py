"""A proxy before a Postgres server that counts what goes by, and cuts where it is told."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.stores.forwarding import Forwarding


class Proxy(Forwarding):
    """Forwards connections to the server of `url`.

    Args:
        url: The server.
        cut: See `Forwarding`.
        pooler: Whether to tell clients a process id of its own for their session, as a
            pooler does whose sessions are not those of the server.
    """

    def __init__(self, url: str, cut: bytes | None = None, *, pooler: bool = False) -> None:
        self.pooler = pooler
        self._server = conninfo_to_dict(url)
        self._folder = Path(tempfile.mkdtemp(prefix="remit-gates-proxy-", dir="/tmp"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._folder / ".s.PGSQL.5432"))
        listener.listen(64)
        self.url = make_conninfo(url, host=str(self._folder), port=5432)
        super().__init__(listener, cut)

    @property
    def executed(self) -> int:
        """How many statements went by."""
        # Execute, in the extended protocol: no text of ours holds these bytes.
        return sum(data.count(b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00") for data in self.sent)

    @property
    def prepared(self) -> int:
        """How many times a message named a statement that psycopg had prepared."""
        return sum(data.count(b"_pg3_") for data in self.sent)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder)

    def _told(self, data: bytes) -> bytes:
        """`data`, of a pooler with another process id where the server tells its own."""
        told = re.search(rb"K\x00\x00\x00\x0c(....)", data, re.DOTALL) if self.pooler else None
        if told is None:
            return data
        other = bytes(byte ^ 1 for byte in told[1])
        return data[: told.start(1)] + other + data[told.end(1) :]

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host")), self._server.get("port") or 5432
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, int(port)))


@contextlib.contextmanager
def proxy(url: str, cut: bytes | None = None, *, pooler: bool = False) -> Iterator[Proxy]:
    """A proxy while the context lasts."""
    with contextlib.closing(Proxy(url, cut, pooler=pooler)) as through:
        yield through
