"""Under a durable engine, and with a conversation store, an answer has its effect once too."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter

from remit_gates.pydantic_graph import ConsumeOnce
from tests.adapters.agents import Till, agent_on, approvals, outcome, park, run
from tests.waiting import PATIENCE


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def till(tmp_path: Path) -> Till:
    """Where a run of one call is parked."""
    pytest.importorskip("pydantic_ai.durable_exec.dbos")
    till = Till(tmp_path / "journal", calls=("pay",))
    history = asyncio.run(park(till))
    (tmp_path / "history.json").write_bytes(ModelMessagesTypeAdapter.dump_json(history))
    till.journal.unlink()
    return till


@contextmanager
def worker(till: Till, url: str, what: str, *ids: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.durable", till.journal.parent, url, what, *ids],
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


def outcomes(till: Till, url: str, what: str, *ids: str) -> list[str]:
    with worker(till, url, what, *ids) as process:
        said, trouble = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, trouble
    found: list[str] = json.loads(said.splitlines()[-1])
    return found


def test_one_workflow_id_runs_once(till: Till, sqlite_url: str) -> None:
    found = outcomes(till, sqlite_url, "one by one", "order-1", "order-1")

    assert found == ["done", "done"]
    assert till.lines == ["pay 10", "model"]


def test_different_workflow_ids_run_once(till: Till, sqlite_url: str) -> None:
    found = outcomes(till, sqlite_url, "together", "a", "b", "c", "d")

    assert found.count("done") == 1
    refused = [said.partition(":")[0] for said in found if said != "done"]
    assert set(refused) <= {"InProgress", "AlreadyConsumed"}, found
    assert till.lines == ["pay 10", "model"]
    # Whoever comes when all is over is told so, and so is each of those again.
    later = outcomes(till, sqlite_url, "one by one", "a", "b", "c", "d", "e")
    assert later[:4] == found
    assert later[4].startswith("AlreadyConsumed")
    assert till.lines == ["pay 10", "model"]


def test_a_killed_workflow_is_recovered(till: Till, sqlite_url: str) -> None:
    """By the engine, and not by whoever comes meanwhile. The tool is no step of the engine,
    which therefore runs it again."""
    folder = till.journal.parent
    with worker(till, sqlite_url, "die", "order-1") as process:
        deadline = time.monotonic() + PATIENCE
        while not (folder / "standing").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert till.lines == ["pay 10"]
    history = ModelMessagesTypeAdapter.validate_json((folder / "history.json").read_bytes())
    given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
    gated = agent_on(till, ConsumeOnce(sqlite_url))
    intruded = asyncio.run(outcome(run(gated, **given)))
    assert type(intruded).__name__ == "InProgress"

    assert outcomes(till, sqlite_url, "recover", "order-1") == ["done"]
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
