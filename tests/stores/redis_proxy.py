"""A proxy before a Redis server that counts round trips, and cuts where it is told."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.stores.forwarding import Forwarding


class RedisProxy(Forwarding):
    """Forwards connections to the server of `url`."""

    def __init__(self, url: str, cut: bytes | None = None, *, once: bool = False) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 6379)
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        port = listener.getsockname()[1]
        self.url = parts._replace(netloc=f"127.0.0.1:{port}").geturl()
        super().__init__(listener, cut, once=once)

    def _connect(self) -> socket.socket:
        return socket.create_connection(self._server)


@contextlib.contextmanager
def redis_proxy(url: str, cut: bytes | None = None, *, once: bool = False) -> Iterator[RedisProxy]:
    """A proxy while the context lasts."""
    with contextlib.closing(RedisProxy(url, cut, once=once)) as through:
        yield through
