"""LangGraph lets other threads call an async saver's graph without awaiting; so does the gate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from remit_gates.errors import AlreadyConsumed
from remit_gates.langgraph import gate
from tests.adapters.graphs import Journal, asks, chain


def test_the_first_thing_that_happens_may_be_a_sync_resume(
    tmp_path: Path, journal: Journal
) -> None:
    config = {"configurable": {"thread_id": "t"}}

    async def scenario() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "runs.db")) as saver:
            graph = chain(ask=asks(journal, "ask", "sure?")).compile(checkpointer=gate(saver))
            await asyncio.to_thread(graph.invoke, {}, config)
            served = await asyncio.to_thread(graph.invoke, Command(resume="yes"), config)
            assert served == {"log": ["ask=yes"]}
            with pytest.raises(AlreadyConsumed):
                await graph.ainvoke(Command(resume="yes"), config)

    asyncio.run(scenario())
