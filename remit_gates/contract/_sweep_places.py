"""Where the deliveries of a sweep come from: processes of this host, or hosts of their own.

A place opens a line when it is first needed, sets up what the line persists to, and closes
all that it opened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from remit_gates.contract._line import Line, Target
from remit_gates.contract._namespaces import Network
from remit_gates.contract._order import DriverFailed


class Here:
    """All deliveries come from this host, those of a backend and column from one line."""

    def __init__(self, target: Target, urls: Mapping[str, str]) -> None:
        self._target = target
        self._urls = urls
        self._lines: dict[tuple[str, str], Line] = {}
        self._stack = ExitStack()

    def describe(self) -> dict[str, Any]:
        """What the driver says of its framework.

        Raises:
            DriverFailed: It cannot be started.
        """
        return asked(self._open(self._target), "describe")

    def line(self, backend: str, column: str, racer: int) -> Line:
        """The same one for all racers."""
        if (backend, column) not in self._lines:
            line = self._open(
                replace(
                    self._target,
                    backend=backend,
                    url=self._urls.get(backend),
                    gated=column == "gated",
                )
            )
            asked(line, "setup")
            self._lines[backend, column] = line
        return self._lines[backend, column]

    def close(self) -> None:
        """End all drivers, and remove what they wrote."""
        self._stack.close()

    def _open(self, target: Target) -> Line:
        folder = tempfile.TemporaryDirectory(prefix="remit-gates-sweep-")
        name = self._stack.enter_context(folder)
        return self._stack.enter_context(closing(Line(target, Path(name))))


class Apart:
    """Each delivery comes from a host of its own, all to one Postgres.

    Attributes:
        hosts: The network of each host: the number that the kernel has for it.
    """

    def __init__(self, target: Target, url: str, network: Network) -> None:
        self._target = replace(target, backend="postgres", url=url)
        self._network = network
        self._lines: dict[int, Line] = {}
        self._stack = ExitStack()
        folder = tempfile.TemporaryDirectory(prefix="remit-gates-sweep-")
        self._folder = Path(self._stack.enter_context(folder))
        self.hosts: dict[str, int] = {}

    def describe(self) -> dict[str, Any]:
        """What the driver says of its framework; set up for all.

        Raises:
            DriverFailed: It cannot be started.
        """
        first = self.line("postgres", "stock", 0)
        about = asked(first, "describe")
        asked(first, "setup", gated=not about.get("gate"))
        return about

    def line(self, backend: str, column: str, racer: int) -> Line:
        """That of the racer's host, whichever the column."""
        number = racer % len(self._network.hosts)
        if number not in self._lines:
            target = replace(self._target, prefix=self._network.prefix(number))
            line = self._stack.enter_context(closing(Line(target, self._folder)))
            self._lines[number] = line
            process = line.order("describe", wait=True)
            process.ready()
            net = Path(f"/proc/{process.call.pid}/ns/net")
            self.hosts[self._network.hosts[number]] = net.stat().st_ino
            process.wait()
        return self._lines[number]

    def close(self) -> None:
        """End all drivers, and remove what they wrote."""
        self._stack.close()


def asked(line: Line, verb: str, **details: Any) -> dict[str, Any]:
    """What `verb` came to.

    Raises:
        DriverFailed: It failed.
    """
    pending = line.order(verb, **details)
    reply = pending.wait(120.0)
    if reply["outcome"] != "ok":
        raise DriverFailed(f"{verb}: {pending.call.said or line.last_words()}")
    value: dict[str, Any] = reply["value"] or {}
    return value
