"""CrewAI as its tests have it: it calls nobody, asks nobody, and keeps what it stores in a
folder of its own.

Whoever imports CrewAI in a test, or in a process of a test, calls `seal` or `load` before.
"""

from __future__ import annotations

import atexit
import builtins
import functools
import importlib
import ipaddress
import os
import shutil
import socket
import tempfile
import warnings
from typing import Any, Final, NoReturn


QUIET: Final = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    # It asks no questions then, of whatever kind of terminal.
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    # A model of it is made, and never called.
    "OPENAI_API_KEY": "nobody-is-called",
    "OTEL_SDK_DISABLED": "true",
}

LOCAL: Final = ("localhost", "localhost.localdomain", "")

attempts: Final[list[str]] = []
"""Whom somebody tried to reach."""


class LeftTheMachineError(OSError):
    """Raised when a test would reach another machine."""


def seal() -> None:
    """Have this process, and those that it starts, reach nobody and ask nobody."""
    if _sealed:
        return
    _sealed.append(True)
    os.environ.update(QUIET)
    if "REMIT_TEST_HOME" not in os.environ:
        home = tempfile.mkdtemp(prefix="remit-gates-crewai-")
        atexit.register(_remove, home, os.getpid())
        os.environ["REMIT_TEST_HOME"] = home
    home = os.environ["REMIT_TEST_HOME"]
    os.environ.update(HOME=home, XDG_DATA_HOME=f"{home}/data", CREWAI_STORAGE_DIR=f"{home}/crewai")
    for name in ("connect", "connect_ex", "sendto"):
        _guard(socket.socket, name, _address)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        _guard(socket, name, _host)
    builtins.input = _asked


def load() -> None:
    """Seal, and import CrewAI, whose companions warn of much in their own code."""
    seal()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("crewai.flow.flow", "crewai.flow.human_feedback", "crewai.crew"):
            importlib.import_module(name)


_sealed: list[bool] = []


def _remove(home: str, pid: int) -> None:
    # A forked child has the registration too, and not the folder.
    if os.getpid() == pid:
        shutil.rmtree(home, ignore_errors=True)


def _guard(owner: Any, name: str, reached: Any) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        host = reached(args, kwargs)
        if not local(host):
            attempts.append(f"{name} {host!r}")
            raise LeftTheMachineError(f"a test would have reached {host!r} by {name}")
        return inner(*args, **kwargs)

    setattr(owner, name, guarded)


def _address(args: Any, kwargs: Any) -> Any:
    # Only an internet socket's address has a host.
    address = args[-1]
    return address[0] if isinstance(address, tuple) else None


def _host(args: Any, kwargs: Any) -> Any:
    host = args[0] if args else kwargs.get("host")
    return host[0] if isinstance(host, tuple) else host


def local(host: Any) -> bool:
    """Whether `host` is this machine."""
    if host is None:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in LOCAL:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _asked(*_: Any) -> NoReturn:
    attempts.append("input()")
    raise LeftTheMachineError("a test would have asked whoever sits before it")
