"""What a gated run asks of its store: how often, and what of it waits for the disk or goes
through another thread. What does not wait protects the run all the same."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic_graph.persistence.file import FileStatePersistence
from pydantic_graph.persistence.in_mem import FullStatePersistence

from remit_gates import Policy
from remit_gates.errors import Abandoned, InProgress
from remit_gates.pydantic_graph import gate
from remit_gates.stores.sqlite import SqliteStore
from tests.adapters.rivals import Rivals
from tests.adapters.snapshots import (
    ROUTES,
    Deps,
    Pay,
    Place,
    State,
    begin_and_stand_still,
    go_on,
    graph,
    park,
)
from tests.garbage import uncollected
from tests.waiting import until


Asked = list[tuple[str, bool, bool]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What SQLite stores did: the statement, whether it waited for the disk, and whether it was
    on the thread of the event loop."""
    found: Asked = []
    original, here = SqliteStore._run, threading.get_ident()

    def run(self: Any, call: Any) -> Any:
        result = original(self, call)
        found.append((call.name, call.writes and call.durable, threading.get_ident() == here))
        return result

    monkeypatch.setattr(SqliteStore, "_run", run)
    return found


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store whose table is there."""
    file = tmp_path / "claims.db"
    store = SqliteStore(file)
    store.setup()
    store.close()
    return f"sqlite:///{file}"


def test_a_resume_waits_for_the_disk_once(asked: Asked, url: str, tmp_path: Path) -> None:
    place = park("file", tmp_path, "")
    assert asyncio.run(go_on(place.gated(store=url), place.deps)) == "shipped"

    assert asked[-3:] == [
        ("read", False, True),
        ("insert", True, False),
        ("swap", False, True),
    ]
    assert len([name for name, *_ in asked if name != "version"]) == 3


def test_a_resume_reads_its_file_once_more_than_without_a_gate(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    original = FileStatePersistence.load_all

    def load_all(self: Any) -> Any:
        nonlocal reads
        reads += 1
        return original(self)

    def resumed(name: str, store: str | None) -> int:
        nonlocal reads
        place = park("file", tmp_path / name, "")
        persistence = place.bare() if store is None else place.gated(store=store)
        reads = 0
        assert asyncio.run(go_on(persistence, place.deps)) == "shipped"
        return reads

    for name in ("stock", "gate"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(FileStatePersistence, "load_all", load_all)
    assert resumed("gate", url) == resumed("stock", None) + 1


def test_a_run_that_begins_waits_for_nothing(asked: Asked, url: str, tmp_path: Path) -> None:
    persistence = gate(FullStatePersistence[State, str](), store=url)
    deps = Deps(tmp_path / "journal")
    asyncio.run(graph.run(Pay(), state=State(), deps=deps, persistence=persistence))

    assert [call for call in asked if call[0] != "version"] == [
        ("read", False, True),
        ("insert", False, True),
        ("swap", False, True),
    ]


def test_a_run_that_begins_again_waits_for_the_disk(asked: Asked, url: str, tmp_path: Path) -> None:
    """Of a run that is called as one before it was, the record says more than that it began."""
    place = Place("file", tmp_path, store=url)
    for _ in range(2):
        asked.clear()
        persistence = place.gated()
        asyncio.run(graph.run(Pay(), state=State(), deps=place.deps, persistence=persistence))

    assert [durable for name, durable, _ in asked if name == "swap"] == [True, False]


def test_on_a_server_the_claim_of_a_run_that_begins_is_durable(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may go down alone, while the run that it knew of goes on."""
    from remit_gates.stores import open_async_store

    store: Any = open_async_store(postgres_url)
    durable: list[bool] = []
    original = store.swap

    async def swap(run: Any, expected: Any, record: Any, lease: Any, lasts: bool = True) -> Any:
        durable.append(lasts)
        return await original(run, expected, record, lease, lasts)

    monkeypatch.setattr(store, "swap", swap)

    async def begin() -> None:
        await store.setup()
        persistence = gate(FullStatePersistence[State, str](), store=store)
        deps = Deps(tmp_path / "journal")
        await graph.run(Pay(), state=State(), deps=deps, persistence=persistence)
        await store.close()

    asyncio.run(begin())
    assert durable == [True, False]


def test_a_run_leaves_nothing_to_be_collected(tmp_path: Path) -> None:
    """Its history would be among it."""

    async def run() -> None:
        persistence = gate(FullStatePersistence[State, str]())
        await graph.initialize(Pay(), persistence, state=State())
        await go_on(persistence, Deps(tmp_path / "journal"))

    with uncollected(FullStatePersistence) as left:
        asyncio.run(run())
        assert left() == 0


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_run_that_began_is_nobody_elses(
    rivals: Rivals, kind: str, sqlite_url: str, tmp_path: Path
) -> None:
    """While it is live, and, though its claim did not wait for the disk, when it was killed."""
    place = Place("file", tmp_path)
    if kind == "sqlite":
        place = Place("sql", tmp_path, sqlite_url, store=sqlite_url)
        asyncio.run(place.bare().setup())
    process = rivals.start(begin_and_stand_still, place, "ship")
    until((tmp_path / "standing").exists, "it stands still")

    def refused(error: type[Exception]) -> None:
        for route in ROUTES.values():
            with pytest.raises(error):
                asyncio.run(route(place.gated(), place.deps))
        assert place.deps.lines == ["pay", "ship"]

    refused(InProgress)
    process.kill()
    process.join()
    refused(Abandoned)
    assert asyncio.run(go_on(place.gated(policy=Policy(on_abandoned="serve")), place.deps))
    assert place.deps.lines == ["pay", "ship", "ship"]


def test_what_a_machine_that_went_down_forgot_is_what_the_history_tells(
    rivals: Rivals, url: str, tmp_path: Path
) -> None:
    """The claim of a run that began may be gone then, and with it all that it kept off was: a
    node that has begun is not run again unless the policy says so."""
    place = Place("file", tmp_path, store=url)
    process = rivals.start(begin_and_stand_still, place, "pay")
    until((tmp_path / "standing").exists, "it stands still")
    process.kill()
    process.join()
    store = SqliteStore(tmp_path / "claims.db")
    assert [store.delete(entry.run) for entry in [*store.scan()]] == [True]
    store.close()

    for route in ROUTES.values():
        with pytest.raises(Abandoned):
            asyncio.run(route(place.gated(), place.deps))
    assert asyncio.run(go_on(place.gated(policy=Policy(on_abandoned="serve")), place.deps))
    assert place.deps.lines == ["pay", "pay", "ship"]
