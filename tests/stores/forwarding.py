"""A proxy before a server that counts what goes by, and cuts where it is told."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from abc import ABC, abstractmethod


class Forwarding(ABC):
    """Forwards the connections that `listener` accepts, byte by byte.

    Args:
        listener: Where clients connect.
        cut: When a client's message holds this, the connection is broken: after the server
            has answered it, without passing the answer on.
        once: Whether that happens to the first such message only.

    Attributes:
        url: The way through the proxy.
        trips: How often a client has waited for the server.
        opened: How many connections were made.
        sent: What clients sent, in order.
    """

    url: str

    def __init__(self, listener: socket.socket, cut: bytes | None, *, once: bool = False) -> None:
        self.cut = cut
        self.once = once
        self.trips = 0
        self.opened = 0
        self.sent: list[bytes] = []
        self._listener = listener
        self._threads = [threading.Thread(target=self._accept)]
        self._stopping, self._stop = socket.socketpair()
        self._threads[0].start()

    def close(self) -> None:
        self._stop.close()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()
        self._stopping.close()

    @abstractmethod
    def _connect(self) -> socket.socket:
        """A connection to the server."""

    def _told(self, data: bytes) -> bytes:
        """What a client gets of `data`, which the server said."""
        return data

    def _accept(self) -> None:
        while self._listener in select.select([self._listener, self._stopping], [], [])[0]:
            client, _ = self._listener.accept()
            self.opened += 1
            thread = threading.Thread(target=self._forward, args=(client,))
            thread.start()
            self._threads.append(thread)

    def _forward(self, client: socket.socket) -> None:
        with client, self._connect() as server, contextlib.suppress(OSError):
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
                    client.sendall(self._told(data))
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
