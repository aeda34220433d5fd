"""A proxy before a Postgres server that counts what goes by, and cuts where it is told."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.stores.forwarding import Forwarding


class Proxy(Forwarding):
    """Forwards connections to the server of `url`."""

    def __init__(self, url: str, cut: bytes | None = None) -> None:
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

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder)

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host")), self._server.get("port") or 5432
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, int(port)))


@contextlib.contextmanager
def proxy(url: str, cut: bytes | None = None) -> Iterator[Proxy]:
    """A proxy while the context lasts."""
    with contextlib.closing(Proxy(url, cut)) as through:
        yield through
