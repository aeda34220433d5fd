"""A proxy before a Redis server that counts round trips, and cuts where it is told."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class RedisProxy:
    """Forwards connections to the server of `url`, byte by byte.

    Args:
        url: The server.
        cut: When a client's message holds this, the connection is broken: after the server
            has answered it, without passing the answer on.
        once: Whether that happens to the first such message only.

    Attributes:
        url: The way through the proxy.
        trips: How often a client has waited for the server.
        opened: How many connections were made.
        sent: What clients sent, in order.
    """

    def __init__(self, url: str, cut: bytes | None = None, *, once: bool = False) -> None:
        self.cut = cut
        self.once = once
        self.trips = 0
        self.opened = 0
        self.sent: list[bytes] = []
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 6379)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        port = self._listener.getsockname()[1]
        self.url = parts._replace(netloc=f"127.0.0.1:{port}").geturl()
        self._threads = [threading.Thread(target=self._accept)]
        self._stopping, self._stop = socket.socketpair()
        self._threads[0].start()

    def close(self) -> None:
        self._stop.close()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()
        self._stopping.close()

    def _accept(self) -> None:
        while self._listener in select.select([self._listener, self._stopping], [], [])[0]:
            client, _ = self._listener.accept()
            self.opened += 1
            thread = threading.Thread(target=self._forward, args=(client,))
            thread.start()
            self._threads.append(thread)

    def _forward(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(self._server) as server,
            contextlib.suppress(OSError),
        ):
            answered = True
            while True:
                ready = select.select([client, server, self._stopping], [], [])[0]
                if self._stopping in ready:
                    return
                if server in ready:
                    data = server.recv(65536)
                    if not data:
                        return
                    answered = True
                    client.sendall(data)
                if client in ready:
                    data = client.recv(65536)
                    if not data:
                        return
                    self.trips += answered
                    answered = False
                    self.sent.append(data)
                    server.sendall(data)
                    if self.cut is not None and self.cut in data:
                        self.cut = None if self.once else self.cut
                        server.recv(65536)
                        return


@contextlib.contextmanager
def redis_proxy(url: str, cut: bytes | None = None, *, once: bool = False) -> Iterator[RedisProxy]:
    """A proxy while the context lasts."""
    through = RedisProxy(url, cut, once=once)
    try:
        yield through
    finally:
        through.close()
