"""Under a durable engine, and with a conversation store, an answer has its effect once too."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter

from remit_gates import open_store
from remit_gates.pydantic_graph import ConsumeOnce
from tests.adapters.agents import Till, agent_on, approvals, outcome, park, run
from tests.waiting import PATIENCE


ROOT = Path(__file__).resolve().parents[2]

Places = tuple[str, str]


@pytest.fixture
def till(tmp_path: Path) -> Till:
    """Where a run of one call is parked."""
    pytest.importorskip("pydantic_ai.durable_exec.dbos")
    till = Till(tmp_path / "journal", calls=("pay",))
    history = asyncio.run(park(till))
    (tmp_path / "history.json").write_bytes(ModelMessagesTypeAdapter.dump_json(history))
    till.journal.unlink()
    return till


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, till: Till) -> Places:
    """A store, and a database for the engine: two files, or one database on a server."""
    if request.param == "sqlite":
        url: str = request.getfixturevalue("sqlite_url")
        return url, f"sqlite:///{till.journal.parent / 'dbos.db'}"
    url = request.getfixturevalue("postgres_url")
    with closing(open_store(url)) as store:
        store.setup()
    return url, url


@contextmanager
def worker(till: Till, places: Places, what: str, *ids: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.durable", till.journal.parent, *places, what, *ids],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def outcomes(till: Till, places: Places, what: str, *ids: str) -> list[str]:
    with worker(till, places, what, *ids) as process:
        said, trouble = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, trouble
    found: list[str] = json.loads(said.splitlines()[-1])
    return found


@pytest.mark.parametrize("places", ["sqlite"], indirect=True)
def test_one_workflow_id_runs_once(till: Till, places: Places) -> None:
    found = outcomes(till, places, "one by one", "order-1", "order-1")

    assert found == ["done", "done"]
    assert till.lines == ["pay 10", "model"]


def test_different_workflow_ids_run_once(till: Till, places: Places) -> None:
    found = outcomes(till, places, "together", "a", "b", "c", "d")

    assert found.count("done") == 1
    refused = [said.partition(":")[0] for said in found if said != "done"]
    assert set(refused) <= {"InProgress", "AlreadyConsumed"}, found
    assert till.lines == ["pay 10", "model"]
    # Whoever comes when all is over is told so, and so is each of those again.
    later = outcomes(till, places, "one by one", "a", "b", "c", "d", "e")
    assert later[:4] == found
    assert later[4].startswith("AlreadyConsumed")
    assert till.lines == ["pay 10", "model"]


def test_a_killed_workflow_is_recovered(till: Till, places: Places) -> None:
    """By the engine, and not by whoever comes meanwhile. The tool is no step of the engine,
    which therefore runs it again."""
    folder = till.journal.parent
    with worker(till, places, "die", "order-1") as process:
        deadline = time.monotonic() + PATIENCE
        while not (folder / "standing").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert till.lines == ["pay 10"]
    history = ModelMessagesTypeAdapter.validate_json((folder / "history.json").read_bytes())
    given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
    gated = agent_on(till, ConsumeOnce(places[0]))
    intruded = asyncio.run(outcome(run(gated, **given)))
    assert type(intruded).__name__ == "InProgress"

    assert outcomes(till, places, "recover", "order-1") == ["done"]
    assert till.lines == ["pay 10", "pay 10", "model"]


@pytest.mark.parametrize("k", [2, 8])
def test_a_conversation_store(sqlite_url: str, tmp_path: Path, k: int) -> None:
    stores: Any = pytest.importorskip("pydantic_ai.conversation_store")
    till = Till(tmp_path / "journal")
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def race() -> list[Any]:
        kept = stores.InMemoryConversationStore()
        asked = await agent.run("go")
        await kept.save(asked.conversation)
        name = asked.conversation.conversation_id

        async def answered() -> Any:
            found = await kept.load(name)
            result = await agent.run(
                conversation=found, deferred_tool_results=approvals(found.messages)
            )
            await kept.save(result.conversation)
            return result.output

        return [*await asyncio.gather(*(outcome(answered()) for _ in range(k)))]

    found = asyncio.run(race())
    assert found.count("done") == 1, found
    assert {type(error).__name__ for error in found if error != "done"} <= {
        "InProgress",
        "AlreadyConsumed",
    }
    assert till.count("pay 10") == 1
