"""What a gated agent does beside racing: ordinary runs are untouched, and each pause is its own."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.test import TestModel

from remit_gates import Policy, _supported, current_claim
from remit_gates._codec import encode
from remit_gates.errors import (
    AlreadyConsumed,
    UnsupportedVersion,
    UsageError,
)
from remit_gates.pydantic_graph import ConsumeOnce, _versions
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
)
from tests.adapters.conftest import NO_RUN


@pytest.mark.parametrize("driver", DRIVERS)
def test_ordinary_turns_claim_nothing(sqlite_url: str, till: Till, driver: str) -> None:
    till.calls = ("charge",)
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def turns() -> None:
        first = await agent.run("go")
        history = first.all_messages()
        together = (
            DRIVERS[driver](agent, user_prompt="and again", message_history=history)
            for _ in range(4)
        )
        assert await asyncio.gather(*together) == ["done"] * 4

    asyncio.run(turns())
    assert till.count("charge 10") == 5
    assert records(sqlite_url) == []


def test_three_pauses_in_a_row(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def rounds() -> None:
        history: list[Any] = []
        for number in range(3):
            asked = await agent.run("go", message_history=history)
            history = asked.all_messages()
            given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
            outcomes = await asyncio.gather(*(outcome(agent.run(**given)) for _ in range(4)))
            [served] = [found for found in outcomes if not isinstance(found, Exception)]
            assert len(split([f for f in outcomes if f is not served])[1]) == 3
            assert till.count("pay 10") == number + 1
            history = served.all_messages()

    asyncio.run(rounds())


def test_conversations_share_the_ids_of_calls(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def many() -> list[Any]:
        histories = [await park(till) for _ in range(3)]
        return [
            await outcome(run(agent, message_history=h, deferred_tool_results=approvals(h)))
            for h in histories
        ]

    assert asyncio.run(many()) == ["done"] * 3
    assert till.count("pay 10") == 3


def test_asking_again_consumes_nothing(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def again() -> Any:
        history = await park(till)
        asked = await agent.run(message_history=history)
        assert not isinstance(asked.output, str)
        assert records(sqlite_url) == []
        history = asked.all_messages()
        return await run(agent, message_history=history, deferred_tool_results=approvals(history))

    assert asyncio.run(again()) == "done"
    assert till.count("pay 10") == 1


def test_rejected_inputs_consume_nothing(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url))

    async def rejected() -> Any:
        history = await park(till)
        some = DeferredToolResults(approvals={"call-1": True})
        for given in (
            {"deferred_tool_results": some},
            {"user_prompt": "something else"},
            {"deferred_tool_results": DeferredToolResults(approvals={"call-9": True})},
        ):
            with pytest.raises(UserError):
                await agent.run(message_history=history, **given)
        assert till.lines == ["model"]
        return await run(agent, message_history=history, deferred_tool_results=approvals(history))

    assert asyncio.run(rejected()) == "done"


def test_a_tool_that_asks_again_is_answered_again(sqlite_url: str, till: Till) -> None:
    """The same calls wait once more, and the next answer to them is served."""
    till.calls = ("wire",)
    agent = agent_on(till, ConsumeOnce(sqlite_url))
    asked: list[int] = []

    async def wire(ctx: RunContext[None], amount: int) -> str:
        asked.append(1)
        if len(asked) < 3:
            raise ApprovalRequired
        await till.note("wired")
        return "wired"

    agent.tool(wire)

    async def rounds() -> None:
        history = (await agent.run("go")).all_messages()
        answer: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        again = await agent.run(**answer)
        assert not isinstance(again.output, str)
        history = again.all_messages()
        answer = {"message_history": history, "deferred_tool_results": approvals(history)}
        outcomes = await asyncio.gather(*(outcome(run(agent, **answer)) for _ in range(4)))
        assert (split(outcomes)[0], len(split(outcomes)[1])) == (["done"], 3)

    asyncio.run(rounds())
    assert till.count("wired") == 1


def test_a_nested_agent(sqlite_url: str, till: Till, tmp_path: Path) -> None:
    """An approved tool runs an agent that parks and is answered itself, under one gate."""
    inner_till = Till(tmp_path / "inner", calls=("pay",))
    gate = ConsumeOnce(sqlite_url)
    inner, outer = agent_on(inner_till, gate), agent_on(till, gate)

    async def nested() -> None:
        history = (await inner.run("go")).all_messages()
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        assert await run(inner, **given) == "done"
        with pytest.raises(AlreadyConsumed):
            await run(inner, **given)

    till.calls, till.then = ("pay",), {"pay": nested}

    async def both() -> Any:
        history = await park(till)
        return await run(outer, message_history=history, deferred_tool_results=approvals(history))

    assert asyncio.run(both()) == "done"
    assert inner_till.count("pay 10") == till.count("pay 10") == 1


def test_answers_on_record(sqlite_url: str, till: Till) -> None:
    """A digest, unless the policy says otherwise."""

    async def served(**policy: Any) -> str:
        agent = agent_on(till, ConsumeOnce(sqlite_url, policy=Policy(**policy)))
        history = await park(till)
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        await agent.run(**given)
        return "".join(encode(record) for record in records(sqlite_url))

    assert "approvals" not in asyncio.run(served())
    assert "approvals" in asyncio.run(served(record_answers=True))


def without_ids(messages: list[Any]) -> list[Any]:
    """A history that a client kept, in a form that has no place for ids."""
    for message in messages:
        for name in ("run_id", "conversation_id"):
            if hasattr(message, name):
                setattr(message, name, None)
    return messages


def _named(chat: str, ctx: Any) -> str:
    return chat


def test_a_history_without_ids_needs_a_scope(sqlite_url: str, till: Till) -> None:
    async def scoped() -> None:
        history = without_ids(await park(till))
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        with pytest.raises(UsageError, match="scope_key"):
            await agent_on(till, ConsumeOnce(sqlite_url)).run(**given)
        assert till.lines == ["model"]

        for chat in ("chat-1", "chat-2"):
            agent = agent_on(till, ConsumeOnce(sqlite_url, scope_key=partial(_named, chat)))
            outcomes = await asyncio.gather(*(outcome(run(agent, **given)) for _ in range(4)))
            assert (split([*outcomes])[0], len(split([*outcomes])[1])) == (["done"], 3)

    asyncio.run(scoped())
    assert till.count("pay 10") == 2


def test_in_one_scope_equal_calls_are_told_apart(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till, ConsumeOnce(sqlite_url, scope_key="chat"))

    async def rounds() -> None:
        history: list[Any] = []
        for _ in range(2):
            asked = await agent.run("go", message_history=history)
            history = without_ids(asked.all_messages())
            done = await agent.run(
                message_history=history, deferred_tool_results=approvals(history)
            )
            history = done.all_messages()

    asyncio.run(rounds())
    assert till.count("pay 10") == 2


@pytest.mark.skipif("capabilities" not in inspect.signature(Agent.run).parameters, reason=NO_RUN)
def test_per_run(sqlite_url: str, till: Till) -> None:
    agent = agent_on(till)

    async def race() -> list[Any]:
        history = await park(till)
        given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
        racing = (
            outcome(run(agent, **given, capabilities=[ConsumeOnce(sqlite_url)])) for _ in range(4)
        )
        return [*await asyncio.gather(*racing)]

    served, refused = split(asyncio.run(race()))
    assert (served, len(refused)) == (["done"], 3)


def test_the_test_model(sqlite_url: str) -> None:
    """Its calls have the same ids in every conversation."""
    agent: Any = Agent(
        TestModel(call_tools=["pay"]),
        output_type=[str, DeferredToolRequests],
        capabilities=[ConsumeOnce(sqlite_url)],
    )
    paid: list[Any] = []

    def pay(amount: int) -> str:
        paid.append(current_claim())
        return "paid"

    agent.tool_plain(requires_approval=True)(pay)

    async def both() -> None:
        for number in (1, 2):
            history = (await agent.run("go")).all_messages()
            given: Any = {"message_history": history, "deferred_tool_results": approvals(history)}
            outcomes = await asyncio.gather(*(outcome(run(agent, **given)) for _ in range(3)))
            assert len(split([*outcomes])[1]) == 2
            assert len(paid) == number

    asyncio.run(both())
    assert len({claim.idempotency_key for claim in paid}) == 2
    assert current_claim() is None


def test_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_supported, "version", lambda name: "1.79.0")
    with pytest.raises(UnsupportedVersion):
        ConsumeOnce("memory://")


def test_a_release_without_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would call the gate there, so none is made."""
    where, name, methods = _versions.AI_HOOKS
    monkeypatch.setattr(_versions, "AI_HOOKS", (where, name, (*methods, "before_nosuch")))
    with pytest.raises(UnsupportedVersion, match="before_nosuch"):
        ConsumeOnce("memory://")
