"""Which server of a cluster has a key. Outside of a cluster there is one, and it has all.

A server that is asked for a key that it does not have says so and does nothing, so a
command that was turned away may always be sent to where it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, ResponseError, TryAgainError

from remit_gates.stores._redis_address import Node
from remit_gates.stores._redis_links import Command, Links, Lost, Unsent
from remit_gates.stores._steps import Steps


SLOTS: Final = 16384
"""How many slots a cluster has."""

TURNS: Final = 8
"""How often a command is turned away at most before that is taken for a failure."""


class Routes:
    """Sends commands to where their key is.

    Args:
        links: The connections.
        seeds: The servers of the cluster that are known; none outside of one.
    """

    def __init__(self, links: Links, seeds: tuple[Node, ...]) -> None:
        self._links = links
        self._seeds = seeds
        self._map: list[Node | None] = []

    def at(self, key: bytes, commands: Sequence[Command]) -> Steps[list[Any]]:
        """The replies to `commands`, all on `key`; see `Links.exchange`."""
        if not self._seeds:
            return (yield from self._links.exchange(None, commands))
        asked: Node | None = None
        turned: ResponseError | None = None
        unreached = 0
        for _ in range(TURNS):
            node = asked or (yield from self._owner(key))
            try:
                if asked is None:
                    replies = yield from self._links.exchange(node, commands)
                else:
                    asking = yield from self._links.exchange(node, [("ASKING",), *commands])
                    replies = asking[1:]
            except Unsent:
                # Its place may have been taken; the others know.
                self._map, asked = [], None
                unreached += 1
                if unreached > 1:
                    raise
                continue
            turned = next(filter(None, map(_turned_away, replies)), None)
            if turned is None:
                return replies
            asked = self._turn(node, turned)
        raise Unsent from turned

    def owner(self, key: bytes) -> Steps[Node | None]:
        """The server that is believed to have `key`; None outside of a cluster."""
        return (yield from self._owner(key)) if self._seeds else None

    def primaries(self) -> Steps[list[Node | None]]:
        """Every server that has keys of its own, as of now."""
        if not self._seeds:
            return [None]
        known = yield from self._learn()
        return [*dict.fromkeys(filter(None, known))]

    def _owner(self, key: bytes) -> Steps[Node]:
        # Another thread may forget the map at any time.
        known = self._map or (yield from self._learn())
        node = known[key_slot(key)]
        if node is None:
            self._map = []
            raise Unsent from ClusterDownError("CLUSTERDOWN no server has the slot of the key")
        return node

    def _turn(self, node: Node, turned: ResponseError) -> Node | None:
        """What `turned`, said by `node`, changes; where to ask once, if that is elsewhere."""
        if isinstance(turned, AskError):
            return (turned.host or node[0], int(turned.port))
        if isinstance(turned, MovedError):
            known = list(self._map)
            if known:
                known[int(turned.slot_id)] = (turned.host or node[0], int(turned.port))
                self._map = known
            return None
        self._map = []
        return None

    def _learn(self) -> Steps[list[Node | None]]:
        """Ask whoever answers which server has which slots."""
        error: BaseException | None = None
        known = dict.fromkeys([*filter(None, self._map), *self._seeds])
        for node in known:
            try:
                (reply,) = yield from self._links.exchange(node, [("CLUSTER", "SLOTS")])
            except (Unsent, Lost) as failure:
                error = failure.__cause__
                continue
            if isinstance(reply, ResponseError):
                error = reply
                continue
            fresh: list[Node | None] = [None] * SLOTS
            for start, end, primary, *_ in reply:
                host, port = primary[0], primary[1]
                # A server that does not know its own name is called what it was asked by.
                owner = (host.decode() if host else node[0], int(port))
                fresh[start : end + 1] = [owner] * (end + 1 - start)
            self._map = fresh
            # They outlive the server of the URL.
            self._seeds = (*dict.fromkeys([*self._seeds, *filter(None, dict.fromkeys(fresh))]),)
            return fresh
        raise Unsent from error


_TURNED: Final[dict[str, type[ResponseError]]] = {
    "MOVED": MovedError,
    "ASK": AskError,
    "CLUSTERDOWN": ClusterDownError,
    "TRYAGAIN": TryAgainError,
}
"""What a server says that did nothing because the key is not its own, or not now."""


def _turned_away(reply: Any) -> ResponseError | None:
    """`reply` as such an error, if it is one. An older redis-py, outside of its own cluster
    client, leaves it to us to read the first word."""
    if not isinstance(reply, ResponseError):
        return None
    if isinstance(reply, tuple(_TURNED.values())):
        return reply
    word, _, rest = str(reply).partition(" ")
    return _TURNED[word](rest) if word in _TURNED else None
