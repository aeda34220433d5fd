"""`remit-gates demo` is right when the gate is, and says so when it is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remit_gates import cli, open_store
from remit_gates._demo import pool


pytest.importorskip("langgraph.checkpoint.sqlite")

COMMAND = [sys.executable, "-m", "remit_gates.cli", "demo"]

# Loaded by every Python started with it on its path: a demo that needs the network fails.
NO_NETWORK = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"the demo used the network: {event} {arguments}")

sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("demo")
    site, temporary = folder / "site", folder / "tmp"
    site.mkdir()
    temporary.mkdir()
    (site / "sitecustomize.py").write_text(NO_NETWORK)
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    done = subprocess.run(
        [*COMMAND, "--json", "--racers", "4"],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), temporary


def scene(document: dict[str, Any], name: str, column: str) -> Any:
    return next(each for each in document["scenes"] if each["name"] == name)[column]


def test_the_gated_column_is_right_and_the_status_says_so(
    played: tuple[int, dict[str, Any], Path],
) -> None:
    status, document, _ = played
    assert document["faults"] == []
    assert document["right"] is True
    assert document["verdict"].startswith("RIGHT")
    assert status == 0


def test_stock_fires_again_in_every_scene(played: tuple[int, dict[str, Any], Path]) -> None:
    _, document, _ = played
    race, late, after = (scene(document, name, "stock") for name in ("race", "late", "next"))
    assert race["effects"]["charge refund $10"] == 4
    assert late["effects"]["charge refund $10"] == 2
    assert after["effects"]["charge wire $10,000"] == 1
    assert [race["served"], late["served"], after["served"]] == [4, 2, 2]


def test_gated_fires_once_and_asks_the_next_question(
    played: tuple[int, dict[str, Any], Path],
) -> None:
    _, document, _ = played
    once = {"charge refund $10": 1, "notify refund $10": 1}
    for name in ("race", "late", "next"):
        assert scene(document, name, "gated")["effects"] == once
    assert scene(document, "next", "gated")["waiting"] == ["wire $10,000?"]
    assert scene(document, "next", "stock")["waiting"] == []


def test_every_refusal_is_typed_and_came_before_any_node(
    played: tuple[int, dict[str, Any], Path],
) -> None:
    _, document, _ = played
    told = {
        name: [
            (call["kind"], call["http_status"], call["nodes"])
            for call in scene(document, name, "gated")["calls"]
            if call["state"] == "refused"
        ]
        for name in ("race", "late", "next")
    }
    assert told == {
        "race": [("InProgress", 409, [])] * 3,
        "late": [("InProgress", 409, [])],
        "next": [("AlreadyConsumed", 409, [])],
    }


def test_nothing_is_left_behind(played: tuple[int, dict[str, Any], Path]) -> None:
    _, _, temporary = played
    assert list(temporary.iterdir()) == []


def test_a_gate_that_is_not_there_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = pool.Worker.order

    def ungated(self: pool.Worker, do: str, **details: object) -> None:
        order(self, do, **({**details, "gated": False} if do == "open" else details))

    monkeypatch.setattr(pool.Worker, "order", ungated)
    status = cli.main(["demo", "--racers", "2"])
    out, err = capsys.readouterr()
    assert status == 1
    assert out.splitlines()[-1].startswith("WRONG: gated, race: ")
    assert "late: 'charge refund $10' fired twice, not once" in out
    assert "next: 'charge wire $10,000' fired once, not never" in out
    assert "demo: gated  race: charge refund $10 twice; 2 served, 0 refused" in err


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_a_store_of_ones_own_is_used_and_left_as_it_was(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Any Redis will do for the claims, so the checkpoints are not there.
    saver = "sqlite" if kind == "redis" else kind
    pytest.importorskip(f"langgraph.checkpoint.{saver}")
    url = request.getfixturevalue(f"{kind}_url")
    status = cli.main(["demo", "--json", "--racers", "2", "--store", url])
    document = json.loads(capsys.readouterr().out)
    assert status == 0
    assert document["checkpointer"] == saver
    # Had the claims been kept elsewhere: here is no file, and in Postgres no table to scan.
    assert kind != "sqlite" or (tmp_path / "claims.db").stat().st_size > 0
    assert document["store"] == kind or kind == "postgres"
    with closing(open_store(url)) as store:
        assert list(store.scan()) == []


@pytest.mark.parametrize(
    ("number", "status", "errors"),
    [(signal.SIGINT, 130, ["remit-gates: error: interrupted"]), (signal.SIGTERM, 143, [])],
)
def test_an_interrupted_demo_leaves_no_process_and_no_file(
    tmp_path: Path, number: signal.Signals, status: int, errors: list[str]
) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "--racers", "2"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if "opening" in line:
            break
    workers = children(demo.pid)
    assert len(workers) == 2
    demo.send_signal(number)
    out, err = demo.communicate(timeout=60)
    assert demo.returncode == status
    assert out == ""
    assert [line for line in err.splitlines() if not line.startswith("demo: ")] == errors
    assert list(tmp_path.iterdir()) == []
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.exists():
        pytest.skip("children of a process cannot be listed here")
    return [int(child) for child in path.read_text().split()]


def test_a_worker_that_hangs_or_dies_is_named(tmp_path: Path) -> None:
    with pool.workers(2, tmp_path, None) as (first, second):
        os.kill(first.pid, signal.SIGSTOP)
        first.order("open", column="stock", gated=False, setup=True)
        with pytest.raises(TimeoutError, match=rf"worker 1 \(process {first.pid}\).*'open'"):
            first.result("open", timeout=0.05)
        os.kill(second.pid, signal.SIGKILL)
        with pytest.raises(ChildProcessError, match=r"worker 2 .* died during 'look'"):
            second.ask("look", column="stock", run="x")
    for worker in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(worker.pid, 0)


def test_an_order_that_fails_says_why_and_the_worker_goes_on(tmp_path: Path) -> None:
    with pool.workers(1, tmp_path, None) as (worker,):
        with pytest.raises(ChildProcessError, match="could not do 'look': KeyError"):
            worker.ask("look", column="none", run="x")
        worker.ask("open", column="stock", gated=False, setup=True)
        assert worker.ask("look", column="stock", run="x") == []
