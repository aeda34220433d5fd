"""What settings of a Redis server can lose a claim that it acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from redis.exceptions import ResponseError

from remit_gates.errors import StoreUnavailable
from remit_gates.stores._redis_address import Node
from remit_gates.stores._redis_links import Command
from remit_gates.stores._steps import Steps


Ask = Callable[[Node | None, Sequence[Command]], Steps[list[Any]]]
"""Sends commands to one server."""


def faults(nodes: Sequence[Node | None], ask: Ask) -> Steps[tuple[str, ...]]:
    """What is wrong with each of `nodes`, with the mend; empty where all is well.

    Only what is certain is told: a hosted server may hide how it keeps its snapshots.
    """
    found: list[str] = []
    for node in nodes:
        name = "" if node is None else f"{node[0]}:{node[1]}: "
        info = yield from _info(node, ask)
        save = yield from _save(node, ask)
        found += (f"{name}{fault}" for fault in _judged(info, save))
    return tuple(found)


def _judged(info: dict[str, str], save: str | None) -> Iterator[str]:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy.startswith("volatile-"):
        yield (
            f"maxmemory-policy is {policy}. It spares records, which never expire, but not"
            " checkpoints that have a time to live, nor a record that something else gave"
            " one. Set it to noeviction."
        )
    elif policy != "noeviction":
        yield (
            f"maxmemory-policy is {policy}, so a server short of memory drops records, and"
            " with them the knowledge that a question was answered. Set it to noeviction."
        )
    if info.get("aof_enabled") == "0" and save == "":
        yield (
            "it keeps nothing on disk: neither appendonly nor save is set, so a restart"
            " forgets every answer. Set appendonly yes, with appendfsync always if no"
            " acknowledged claim may be lost to a crash."
        )
    if info.get("role") == "slave":
        yield "it is a replica, which cannot be written to. Give the URL of its primary."


def _info(node: Node | None, ask: Ask) -> Steps[dict[str, str]]:
    sections = ("memory", "persistence", "replication")
    replies = yield from ask(node, [("INFO", section) for section in sections])
    lines = (
        line.partition(":")
        for reply in replies
        if isinstance(reply, bytes)
        for line in reply.decode().splitlines()
    )
    return {name: value for name, _, value in lines}


def _save(node: Node | None, ask: Ask) -> Steps[str | None]:
    """When snapshots are made; None where that may not be asked."""
    try:
        (reply,) = yield from ask(node, [("CONFIG", "GET", "save")])
    except StoreUnavailable as error:
        if isinstance(error.__cause__, ResponseError):
            return None
        raise
    return bytes(reply[1]).decode() if reply else None
