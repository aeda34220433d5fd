"""The operators' commands on Postgres, and what their doctor finds of a server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from remit_gates import cli
from remit_gates._cli import common, doctor
from remit_gates.stores import _pg_checks
from remit_gates.stores._pg_sources import Own
from remit_gates.stores.postgres import PostgresStore
from tests.servers import Postgres, postgres_server
from tests.unit.commands import abandon, fail, one_line, run, settle, told


GATE = ("--framework", "gate")


@pytest.fixture(autouse=True)
def no_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FRAMEWORKS", {})


@pytest.fixture
def url(capsys: pytest.CaptureFixture[str], postgres_url: str) -> str:
    """A store with a run in each phase but the first."""
    assert run(capsys, "setup", postgres_url, "--dry-run")[1].startswith("The table would be made")
    assert run(capsys, "setup", postgres_url) == (0, "The store is ready.\n", "")
    settle(postgres_url, "a-settled")
    fail(postgres_url, "b-failed")
    abandon(postgres_url, "c-abandoned")
    return postgres_url


def test_the_commands(capsys: pytest.CaptureFixture[str], url: str) -> None:
    listed = told(capsys, "ls", url, "--limit", "2")
    assert [each["phase"] for each in listed["runs"]] == ["settled", "failed"]
    listed = told(capsys, "ls", url, "--after", json.dumps(listed["next"]))
    assert [each["phase"] for each in listed["runs"]] == ["abandoned"]
    for phase, name in (("failed", "b-failed"), ("abandoned", "c-abandoned")):
        [found] = told(capsys, "ls", url, "--phase", phase)["runs"]
        assert found["run"] == name
        assert told(capsys, "show", url, name, *GATE)["unfinished"] == ["approve"]
        assert run(capsys, "release", url, name, *GATE)[0] == 2
        assert told(capsys, "release", url, name, *GATE, "--yes")["released"]
        settle(url, name)
    assert told(capsys, "prune", url, "--older-than", "1h", "--yes") == {"pruned": 0}
    assert told(capsys, "prune", url, "--older-than", "0s", "--dry-run")["would_prune"] == 3
    assert told(capsys, "prune", url, "--older-than", "0s", "--yes") == {"pruned": 3}


def test_a_long_look_is_waited_for_and_a_lost_host_is_not(postgres_url: str) -> None:
    with common.looking(postgres_url, long=True) as store:
        assert isinstance(store, PostgresStore)
        own = store._flows._source
        assert isinstance(own, Own)
        assert (own._limit, own._options["connect_timeout"]) == (common.LONG, common.PATIENCE)
    with common.looking(postgres_url) as store:
        assert isinstance(store, PostgresStore)
        assert isinstance(store._flows._source, Own)
        assert store._flows._source._limit == common.PATIENCE


def test_without_a_table_the_commands_say_so(
    capsys: pytest.CaptureFixture[str], postgres_url: str
) -> None:
    for command in (["ls"], ["show", "run"], ["release", "run"], ["prune", "--older-than", "1d"]):
        name, *rest = command
        status, out, err = run(capsys, name, postgres_url, *rest)
        assert (status, out) == (1, "")
        assert "`remit-gates setup URL`" in one_line(err)


def test_no_command_repeats_a_credential(capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://bob:hunter2@127.0.0.1:1/db"
    for command in (["ls"], ["show", "run"], ["release", "run", "--yes"], ["doctor"], ["setup"]):
        name, *rest = command
        status, out, err = run(capsys, name, url, *rest)
        assert status == 1
        assert "hunter2" not in out + err


def checked(url: str, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    status = cli.main(["doctor", url, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (status == 0)
    return {check["name"]: check for check in document["checks"]}


def failing(checks: dict[str, dict[str, str]]) -> set[str]:
    return {name for name, check in checks.items() if check["state"] == "fail"}


@contextlib.contextmanager
def setting(server: Postgres, name: str, value: str) -> Iterator[None]:
    """Have the server run with another setting."""

    def apply(change: str, expected: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(change.encode())
            connection.execute("SELECT pg_reload_conf()")
            # The postmaster passes it on in its own time.
            while connection.execute(f"SHOW {name}".encode()).fetchone() != (expected,):
                connection.execute("SELECT pg_sleep(0.01)")

    with psycopg.connect(server.url, autocommit=True) as connection:
        row = connection.execute(f"SHOW {name}".encode()).fetchone()
    assert row is not None
    apply(f"ALTER SYSTEM SET {name} = {value}", value)
    try:
        yield
    finally:
        apply(f"ALTER SYSTEM SET {name} = {row[0]}", row[0])


def test_a_server_that_is_well(
    capsys: pytest.CaptureFixture[str], postgres: Postgres, url: str
) -> None:
    with setting(postgres, "fsync", "on"):
        checks = checked(url, capsys)
    assert failing(checks) == set()
    assert checks["primary"]["says"] == "takes writes"
    assert checks["fsync"]["says"] == "on"
    assert {"connection", "schema", "clock", "server", "synchronous_commit"} <= set(checks)


def test_a_server_that_does_not_wait_for_its_disk(
    capsys: pytest.CaptureFixture[str], postgres: Postgres, url: str
) -> None:
    """The server of the tests is one."""
    with setting(postgres, "full_page_writes", "off"):
        checks = checked(url, capsys)
        assert failing(checks) == {"fsync", "full_page_writes"}
        assert "ALTER SYSTEM SET fsync = on" in checks["fsync"]["mend"]
        _, _, err = run(capsys, "doctor", url)
    assert "can lose a claim" in one_line(err)
    assert "fsync, full_page_writes" in err


def test_settings_are_looked_at_without_a_table(
    capsys: pytest.CaptureFixture[str], postgres: Postgres, postgres_url: str
) -> None:
    with setting(postgres, "fsync", "on"):
        checks = checked(postgres_url, capsys)
    assert failing(checks) == {"schema"}
    assert checks["schema"]["mend"] == "remit-gates setup URL"
    assert checks["primary"]["state"] == "ok"


def test_a_role_that_may_not_write(
    capsys: pytest.CaptureFixture[str], postgres: Postgres, url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode()
        )
    with setting(postgres, "fsync", "on"):
        checks = checked(url, capsys)
    assert failing(checks) == {"primary"}
    assert "read-only" in checks["primary"]["says"]


def test_a_role_that_may_only_look(
    capsys: pytest.CaptureFixture[str], postgres: Postgres, url: str
) -> None:
    role = f"looker_{Path(url).name.rpartition('/')[2].partition('?')[0]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{role}" LOGIN'.encode())
        connection.execute(f'GRANT SELECT ON remit_gates, remit_gates_schema TO "{role}"'.encode())
    try:
        with setting(postgres, "fsync", "on"):
            checks = checked(_as_role(url, role), capsys)
        assert failing(checks) == {"privileges"}
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP OWNED BY "{role}"'.encode())
            connection.execute(f'DROP ROLE "{role}"'.encode())


def _as_role(url: str, role: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{role}@{rest.partition('@')[2]}"


def test_a_read_replica_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    # A server of its own: one that stands by takes no writes of others either.
    with postgres_server() as server:
        url = server.create()
        assert run(capsys, "setup", url)[0] == 0
        (server.folder / "standby.signal").touch()
        server.restart()
        checks = checked(url, capsys)
        status, _, err = run(capsys, "doctor", url)
    assert "primary" in failing(checks)
    assert "read replica" in checks["primary"]["says"]
    assert "target_session_attrs=read-write" in checks["primary"]["mend"]
    assert status == 1
    assert "primary" in one_line(err)


ROW = ("18", False, "off", "on", "on", "on", "", 0, True)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, {}),
        ({5: "off"}, {}),
        ({5: "remote_apply", 6: "standby"}, {}),
        ({7: 1}, {"failover": "warn"}),
        ({7: 1, 6: "standby"}, {}),
        ({7: 1, 6: "standby", 5: "local"}, {"failover": "warn"}),
        ({1: True}, {"primary": "fail"}),
        ({2: "on"}, {"primary": "fail"}),
        ({3: "off"}, {"fsync": "fail"}),
        ({4: "off"}, {"full_page_writes": "fail"}),
        ({8: False}, {"privileges": "fail"}),
        ({8: None}, {}),
    ],
)
def test_what_the_settings_mean(changed: dict[int, object], found: dict[str, str]) -> None:
    row = [changed.get(index, value) for index, value in enumerate(ROW)]
    checks = list(_pg_checks.checks(row))
    assert {each.name: each.state for each in checks if each.state != "ok"} == found
    assert all(bool(each.mend) is (each.state != "ok") for each in checks)
