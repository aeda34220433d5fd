"""Who holds a claim, and whether that process is known to be dead.

Known means known: the same boot, pid namespace and time namespace, and the pid gone,
a zombie, or another process by its start time. Anything else is not known, and then
only the lease decides.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import socket
from pathlib import Path
from typing import Literal

from remit_gates._model import Holder


def mint() -> Holder:
    """A holder for a new attempt in this process."""
    return Holder(_host(), os.getpid(), _own_start(os.getpid()), secrets.token_hex(8))


def known_dead(holder: Holder) -> bool:
    """Whether the process behind `holder` has certainly ended."""
    return liveness(holder) == "dead"


def liveness(holder: Holder) -> Literal["alive", "dead", "unknown"]:
    """Whether the process behind `holder` certainly runs, has certainly ended, or cannot be
    told of from here."""
    if not holder.started or holder.host != _host():
        return "unknown"
    if holder.pid == os.getpid():
        return "alive" if holder.started == _own_start(os.getpid()) else "dead"
    try:
        state, started = _stat(holder.pid)
    except FileNotFoundError:
        return "dead"
    except (OSError, ValueError, IndexError):
        return "unknown"
    return "dead" if started != holder.started or state in "ZX" else "alive"


@functools.cache
def _host() -> str:
    """The host's name, and a digest of what makes its pids and start times comparable."""
    name = socket.gethostname()
    try:
        parts = [
            Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"),
            str(Path("/proc/self/ns/pid").readlink()),
            str(Path("/proc/self/ns/time").readlink()),
        ]
    except OSError:
        return name
    return f"{name}#{hashlib.sha256(''.join(parts).encode()).hexdigest()[:12]}"


@functools.lru_cache(maxsize=1)
def _own_start(pid: int) -> str:
    """The start time of this process; empty where the system does not tell, or where
    pids of other processes could not be compared with ours."""
    if "#" not in _host():
        return ""
    try:
        return _stat(pid)[1]
    except (OSError, ValueError, IndexError):
        return ""


def _stat(pid: int) -> tuple[str, str]:
    """State and start time of a process: fields 3 and 22 of proc(5)'s stat."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    # The command name, in parentheses, may itself hold spaces and parentheses.
    after = text.rpartition(")")[2].split()
    return after[0], after[19]
