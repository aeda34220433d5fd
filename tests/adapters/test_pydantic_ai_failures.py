"""A run of an agent that fails, is cancelled or dies leaves what its policy says, and the receipt of
the tools that are done."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter

from remit_gates import Policy, release
from remit_gates.errors import (
    Abandoned,
    AlreadyConsumed,
    InProgress,
    StoreUnavailable,
)
from remit_gates.pydantic_graph import ConsumeOnce
from tests.adapters.agents import (
    DRIVERS,
    Till,
    agent_on,
    approvals,
    outcome,
    park,
    records,
    run,
    split,
    stand_still,
)
from tests.adapters.rivals import Rivals
from tests.waiting import PATIENCE


def raising() -> None:
    raise ConnectionError("down")


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_model_fails_after_the_tools(sqlite_url: str, till: Till, driver: str) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def failed() -> Any:
        history = await park(till)
        till.then["model"] = raising
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        with pytest.raises(ConnectionError):
            await DRIVERS[driver](agent, **given)
        till.then.clear()

        receipt: list[Any] = []
        for policy in (Policy(), Policy(on_failure="retry", on_abandoned="serve")):
            retrying = agent_on(till, ConsumeOnce(sqlite_url, policy=policy))
            with pytest.raises(AlreadyConsumed) as refused:
                await DRIVERS[driver](retrying, **given)
            assert refused.value.failed
            receipt = pickle.loads(pickle.dumps(refused.value)).receipt
            assert len(receipt) == 1
        return await DRIVERS[driver](agent, message_history=[*history, *receipt])

    assert asyncio.run(failed()) == "done"
    assert Counter(till.lines) == {"model": 3, "pay 10": 1, "pay 20": 1}


def test_without_receipts(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url, receipts=False))

    async def failed() -> None:
        history = await park(till)
        till.then["model"] = raising
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        with pytest.raises(ConnectionError):
            await agent.run(**given)
        with pytest.raises(AlreadyConsumed) as refused:
            await agent.run(**given)
        assert refused.value.failed
        assert refused.value.receipt is None

    asyncio.run(failed())
    assert "paid" not in str(records(sqlite_url))


def test_a_run_that_ended_keeps_no_receipt(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def served() -> None:
        history = await park(till)
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        await agent.run(**given)
        with pytest.raises(AlreadyConsumed) as refused:
            await agent.run(**given)
        assert refused.value.receipt is None
        assert refused.value.same_answer is True
        with pytest.raises(AlreadyConsumed) as other:
            await agent.run(
                message_history=history, deferred_tool_results=approvals(history, approved=False)
            )
        assert other.value.same_answer is False

    asyncio.run(served())
    assert "paid" not in str(records(sqlite_url))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_tool_raises(sqlite_url: str, till: Till, driver: str) -> None:
    till.then["pay"] = raising
    agent = agent_on(till, ConsumeOnce(sqlite_url, delivery="m", actor="ann"))

    async def failed() -> None:
        history = await park(till)
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        with pytest.raises(ConnectionError):
            await DRIVERS[driver](agent, **given)
        till.then.clear()
        with pytest.raises(AlreadyConsumed) as refused:
            await DRIVERS[driver](agent_on(till, ConsumeOnce(sqlite_url)), **given)
        assert refused.value.failed
        assert "ann" in str(refused.value)
        # The same message may try again, and so may anybody whom the policy lets.
        assert await DRIVERS[driver](agent, **given) == "done"

    asyncio.run(failed())
    assert till.count("model") == 2


def test_a_released_answer_is_given_anew(sqlite_url: str, till: Till) -> None:
    till.then["pay"] = raising
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def failed() -> Any:
        history = await park(till)
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        with pytest.raises(ConnectionError):
            await agent.run(**given)
        till.then.clear()
        with pytest.raises(AlreadyConsumed) as refused:
            await agent.run(**given)
        assert release(sqlite_url, refused.value.run.run, framework="pydantic-ai")
        return await run(agent, **given)

    assert asyncio.run(failed()) == "done"


def test_a_cancelled_run(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def cancelled() -> None:
        history = await park(till)
        till.then["pay"] = lambda: asyncio.Event().wait()
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        task = asyncio.ensure_future(agent.run(**given))
        while not till.count("pay 10"):
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(AlreadyConsumed) as refused:
            await agent.run(**given)
        assert refused.value.failed

    asyncio.run(cancelled())


def test_a_killed_run_by_policy(rivals: Rivals, sqlite_url: str, tmp_path: Path) -> None:
    till = Till(tmp_path / "journal", calls=("pay",))
    messages = asyncio.run(park(till))
    history = ModelMessagesTypeAdapter.dump_json(messages)
    process = rivals.start(stand_still, sqlite_url, tmp_path, history, 0.3)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "standing").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    given: Any = {"message_history": messages, "deferred_tool_results": approvals(messages)}
    gated = agent_on(till, ConsumeOnce(sqlite_url, policy=Policy(lease=0.3)))

    async def refused(error: type[Exception]) -> None:
        with pytest.raises(error):
            await gated.run(**given)

    # Its tool blocks the loop for longer than a lease, and it keeps its claim.
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        asyncio.run(refused(InProgress))
    process.kill()
    process.join()
    asyncio.run(refused(Abandoned))

    serving = agent_on(till, ConsumeOnce(sqlite_url, policy=Policy(on_abandoned="serve")))

    async def race() -> list[Any]:
        return [*await asyncio.gather(*(outcome(run(serving, **given)) for _ in range(8)))]

    served, others = split(asyncio.run(race()))
    assert (served, len(others)) == (["done"], 7)
    assert till.count("pay 10") == 2


def test_a_store_that_is_down(till: Till, tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    agent = agent_on(till, ConsumeOnce(url))

    async def down() -> None:
        history = await park(till)
        with pytest.raises(StoreUnavailable):
            await agent.run(message_history=history, deferred_tool_results=approvals(history))

    asyncio.run(down())
    assert till.lines == ["model"]
