"""A proxy before a Postgres server that counts what goes by, and cuts where it is told."""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Proxy:
    """Forwards connections to the server of `url`, byte by byte.

    Args:
        url: The server.
        cut: When a client's message holds this, the connection is broken: after the server
            has answered it, without passing the answer on.

    Attributes:
        url: The way through the proxy.
        executed: How many statements went by.
        opened: How many connections were made.
    """

    def __init__(self, url: str, cut: bytes | None = None) -> None:
        self.cut = cut
        self.executed = 0
        self.opened = 0
        self._server = conninfo_to_dict(url)
        self._folder = Path(tempfile.mkdtemp(prefix="remit-gates-proxy-", dir="/tmp"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / ".s.PGSQL.5432"))
        self._listener.listen(64)
        self.url = make_conninfo(url, host=str(self._folder), port=5432)
        self._threads = [threading.Thread(target=self._accept)]
        self._stopping, self._stop = socket.socketpair()
        self._threads[0].start()

    def close(self) -> None:
        self._stop.close()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()
        self._stopping.close()
        shutil.rmtree(self._folder)

    def _accept(self) -> None:
        while self._listener in select.select([self._listener, self._stopping], [], [])[0]:
            client, _ = self._listener.accept()
            self.opened += 1
            thread = threading.Thread(target=self._forward, args=(client,))
            thread.start()
            self._threads.append(thread)

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host")), self._server.get("port") or 5432
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, int(port)))

    def _forward(self, client: socket.socket) -> None:
        with client, self._connect() as server, contextlib.suppress(OSError):
            while True:
                ready = select.select([client, server, self._stopping], [], [])[0]
                if self._stopping in ready:
                    return
                if server in ready:
                    data = server.recv(65536)
                    if not data:
                        return
                    client.sendall(data)
                if client in ready:
                    data = client.recv(65536)
                    if not data:
                        return
                    # Execute, in the extended protocol: no text of ours holds these bytes.
                    self.executed += data.count(b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00")
                    server.sendall(data)
                    if self.cut is not None and self.cut in data:
                        server.recv(65536)
                        return


@contextlib.contextmanager
def proxy(url: str, cut: bytes | None = None) -> Iterator[Proxy]:
    """A proxy while the context lasts."""
    through = Proxy(url, cut)
    try:
        yield through
    finally:
        through.close()
