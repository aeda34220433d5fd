"""Who is known to be dead: nobody of whom that is not certain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from remit_gates import _liveness
from remit_gates._liveness import known_dead, mint
from remit_gates._model import Holder


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs a process table to look at"
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What a test makes the module believe about this machine is forgotten again."""
    yield
    _liveness._host.cache_clear()
    _liveness._own_start.cache_clear()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Another process, which lives until it is ended."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def holder_of(process: subprocess.Popen[bytes]) -> Holder:
    """The holder that `process` would mint."""
    return replace(mint(), pid=process.pid, started=_liveness._stat(process.pid)[1])


def test_each_attempt_is_a_holder_of_its_own() -> None:
    first, second = mint(), mint()
    assert first != second
    assert replace(first, nonce=second.nonce) == second
    assert first.pid == os.getpid()
    assert first.started


def test_this_process_is_alive() -> None:
    assert not known_dead(mint())


def test_an_earlier_process_with_this_pid_is_dead() -> None:
    assert known_dead(replace(mint(), started="1"))


def test_a_live_process_is_not_dead(child: subprocess.Popen[bytes]) -> None:
    assert not known_dead(holder_of(child))


def test_a_process_that_is_gone_is_dead(child: subprocess.Popen[bytes]) -> None:
    holder = holder_of(child)
    child.kill()
    child.wait()
    assert known_dead(holder)


def test_a_zombie_is_dead(child: subprocess.Popen[bytes]) -> None:
    holder = holder_of(child)
    child.kill()
    # Waits until it has ended, and leaves it unburied.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert _liveness._stat(child.pid)[0] == "Z"
    assert known_dead(holder)


def test_a_pid_that_was_given_to_another_process_is_dead(child: subprocess.Popen[bytes]) -> None:
    assert known_dead(replace(holder_of(child), started="1"))


def test_of_another_host_nothing_is_known(child: subprocess.Popen[bytes]) -> None:
    elsewhere = replace(holder_of(child), host="elsewhere#0123456789ab")
    child.kill()
    child.wait()
    assert not known_dead(elsewhere)


def test_of_a_holder_without_a_start_time_nothing_is_known() -> None:
    assert not known_dead(replace(mint(), pid=2**22 + 1, started=""))


@pytest.mark.parametrize("error", [PermissionError(), ValueError(), IndexError()])
def test_of_a_process_that_cannot_be_read_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes], error: Exception
) -> None:
    holder = holder_of(child)

    def unreadable(pid: int) -> tuple[str, str]:
        raise error

    monkeypatch.setattr(_liveness, "_stat", unreadable)
    assert not known_dead(holder)


def test_where_pids_cannot_be_compared_no_start_time_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(path: Path) -> Path:
        raise PermissionError(path)

    monkeypatch.setattr(Path, "readlink", unreadable)
    _liveness._host.cache_clear()
    _liveness._own_start.cache_clear()
    holder = mint()
    assert ("#" in holder.host, holder.started) == (False, "")
    # So two containers of one name never take each other for dead.
    assert not known_dead(replace(holder, pid=2**22 + 1))


def test_a_start_time_that_cannot_be_read_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(pid: int) -> tuple[str, str]:
        raise PermissionError(pid)

    monkeypatch.setattr(_liveness, "_stat", unreadable)
    _liveness._own_start.cache_clear()
    assert mint().started == ""


@pytest.mark.parametrize("name", ["plain", "a b", ") R 1 (", "((x)) S"])
def test_a_command_name_may_hold_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    fields = ["T", *map(str, range(4, 53))]
    stat = tmp_path / "stat"
    stat.write_text(f"77 ({name}) {' '.join(fields)}\n")
    monkeypatch.setattr(_liveness, "Path", lambda path: stat)
    assert _liveness._stat(77) == ("T", "22")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_a_process_of_its_own() -> None:
    mint()
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        holder = mint()
        alive = not known_dead(holder) and holder.pid == os.getpid()
        os.write(writes, f"{alive} {holder.started}".encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        said, started = pipe.read().split()
    os.waitpid(pid, 0)
    assert said == "True"
    assert int(started) >= int(mint().started)
