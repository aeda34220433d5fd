"""`remit-gates doctor`: what can make a gate lose a claim is found, and what to do is said."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from remit_gates._cli import doctor
from remit_gates.errors import StoreUnavailable
from remit_gates.stores import _sqlite_checks
from remit_gates.stores._checks import Check
from remit_gates.stores._sqlite_checks import file_system
from remit_gates.stores.memory import _SHARED, MemoryStore
from tests.unit.commands import checked, failing, one_line, run


@pytest.fixture(autouse=True)
def no_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed beside these tests is no matter of theirs."""
    monkeypatch.setattr(doctor, "FRAMEWORKS", {})


def test_a_store_that_is_well(capsys: pytest.CaptureFixture[str], sqlite_url: str) -> None:
    run(capsys, "setup", sqlite_url)
    status, out, err = run(capsys, "doctor", sqlite_url)
    assert (status, err) == (0, "")
    lines = [line.split()[:2] for line in out.splitlines()]
    assert lines[:4] == [
        ["STATE", "CHECK"],
        ["ok", "connection"],
        ["ok", "schema"],
        ["ok", "clock"],
    ]
    assert ["ok", "journal"] in lines
    checks = checked(capsys, sqlite_url)
    assert "WAL" in checks["journal"]["says"]


def test_a_table_that_is_missing(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    checks = checked(capsys, sqlite_url, 1)
    assert failing(checks) == {"schema"}
    assert checks["schema"]["mend"] == "remit-gates setup URL"
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_a_newer_release(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    run(capsys, "setup", sqlite_url)
    with sqlite3.connect(tmp_path / "claims.db") as connection:
        connection.execute("UPDATE remit_gates_schema SET version = 99")
    connection.close()
    checks = checked(capsys, sqlite_url, 1)
    assert failing(checks) == {"schema"}
    assert "upgrade" in checks["schema"]["mend"]


def test_a_file_that_is_no_database(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    (tmp_path / "claims.db").write_text("no database, and more than a few bytes of it" * 100)
    checks = checked(capsys, sqlite_url, 1)
    assert list(checks) == ["connection"]
    assert failing(checks) == {"connection"}


def test_a_journal_that_is_not_wal(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    run(capsys, "setup", sqlite_url)
    with sqlite3.connect(tmp_path / "claims.db", isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.close()
    checks = checked(capsys, sqlite_url)
    assert checks["journal"]["state"] == "warn"
    # It looked, and changed nothing.
    assert checked(capsys, sqlite_url)["journal"]["state"] == "warn"


@pytest.mark.parametrize(
    ("kind", "state"),
    [("nfs4", "fail"), ("cifs", "fail"), ("fuse.sshfs", "fail"), ("tmpfs", "warn"), ("xfs", "ok")],
)
def test_the_kind_of_file_system(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    sqlite_url: str,
    kind: str,
    state: str,
) -> None:
    run(capsys, "setup", sqlite_url)
    monkeypatch.setattr(_sqlite_checks, "file_system", lambda path: kind)
    checks = checked(capsys, sqlite_url, int(state == "fail"))
    assert checks["file system"]["state"] == state
    if state == "fail":
        _, _, err = run(capsys, "doctor", sqlite_url)
        assert "can lose a claim that it acknowledged" in one_line(err)


MOUNTS = """\
22 1 252:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /srv rw shared:2 - xfs /dev/vdb rw
31 30 0:31 / /srv/a\\040b rw,noatime shared:3 master:4 - nfs4 host:/x rw
32 22 0:32 / /srvant rw - tmpfs tmpfs rw
33 22 0:33 / /mnt rw - ext4 /dev/vdc rw
34 33 0:34 / /mnt rw - cifs //host/x rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/claims.db", "ext4"),
        ("/srv/claims.db", "xfs"),
        ("/srv/a b/claims.db", "nfs4"),
        ("/srv/a bc/claims.db", "xfs"),
        ("/srvant/claims.db", "tmpfs"),
        ("/mnt/claims.db", "cifs"),
    ],
)
def test_a_file_lies_on_the_last_mount_of_its_longest_prefix(
    tmp_path: Path, path: str, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(path, str(mounts)) == kind


def test_a_system_that_does_not_tell_its_mounts(tmp_path: Path) -> None:
    assert file_system("/claims.db", str(tmp_path / "none")) is None


def test_a_folder_that_may_not_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    run(capsys, "setup", sqlite_url)
    monkeypatch.setattr("os.access", lambda path, mode: str(path).endswith(".db"))
    assert failing(checked(capsys, sqlite_url, 1)) == {"permissions"}


def test_an_sqlite_that_is_too_old(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    run(capsys, "setup", sqlite_url)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert failing(checked(capsys, sqlite_url, 1)) == {"library"}


@pytest.mark.parametrize(("off", "state"), [(0.0, "ok"), (-90.0, "warn"), (90.0, "warn")])
def test_a_clock_that_differs(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    off: float,
    state: str,
) -> None:
    monkeypatch.setitem(_SHARED, "late", MemoryStore(lambda: time.time() + off))
    clock = checked(capsys, "memory://late")["clock"]
    assert clock["state"] == state
    if off:
        assert f"90.0 s {'ahead of' if off > 0 else 'behind'} this host's" in clock["says"]


@pytest.mark.parametrize(
    ("ahead", "took", "said"),
    [(5.0, 5.0, "0.0"), (5.0, 0.1, "4.9"), (-5.0, 5.0, "5.0"), (0.5, 0.1, "0.4")],
)
def test_the_way_to_the_store_is_no_difference(ahead: float, took: float, said: str) -> None:
    assert f"{said} s" in doctor._clock(ahead, took).says


def test_memory_is_told_not_to_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, "memory://")["durability"]["state"] == "warn"


class Doubtful(MemoryStore):
    """A store that says what is wrong with it in the way of those that have no checks."""

    faults: tuple[str, ...] = ()
    checks: Any = None

    def misconfigured(self) -> tuple[str, ...]:
        return self.faults


@pytest.mark.parametrize("faults", [(), ("it evicts; set maxmemory-policy to noeviction",)])
def test_a_store_that_knows_that_it_is_misconfigured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, faults: tuple[str, ...]
) -> None:
    store = Doubtful()
    store.faults = faults
    monkeypatch.setitem(_SHARED, "doubtful", store)
    status, out, err = run(capsys, "doctor", "memory://doubtful")
    assert status == len(faults)
    assert all(fault in out for fault in faults)
    assert not faults or "can lose a claim" in one_line(err)


def test_a_store_that_cannot_be_reached(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Down(MemoryStore):
        def read(self, run: Any) -> Any:
            raise StoreUnavailable("the host is down")

        def checks(self) -> tuple[Check, ...]:
            raise AssertionError("nobody is there to be asked")

    monkeypatch.setitem(_SHARED, "down", Down())
    checks = checked(capsys, "memory://down", 1)
    assert failing(checks) == {"connection"}
    assert checks["connection"]["says"] == "the host is down"


def test_a_url_that_names_no_store_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "doctor", "nosuch://user:hunter2@place")
    assert (status, out) == (2, "")
    assert "hunter2" not in one_line(err)
