"""A worker of a durable engine (DBOS), which runs a gated agent in its workflows.

Run as a program with a folder, the URL of a store, that of the engine's database, what to do,
and workflow ids. Prints one line of JSON: what became of each workflow, in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessagesTypeAdapter

from remit_gates import Policy
from remit_gates.pydantic_graph import ConsumeOnce
from tests.adapters.agents import Till, agent_on, approvals, outcome, run


async def main(folder: Path, url: str, engine: str, what: str, *ids: str) -> list[str]:
    """Have the workflows `ids` answer the history in `folder`."""
    durability: Any = DBOSDurability
    till = Till(folder / "journal", calls=("pay",))
    gate: Any = ConsumeOnce(url, policy=Policy(on_abandoned="serve"))
    agent = agent_on(till, durability(), gate)
    DBOS(
        config={
            "name": "till",
            "system_database_url": engine,
            "run_admin_server": False,
            "log_level": "CRITICAL",
            "application_version": "1",
        }
    )

    async def answered(history: str) -> Any:
        messages = ModelMessagesTypeAdapter.validate_json(history)
        return await run(agent, message_history=messages, deferred_tool_results=approvals(messages))

    answer = DBOS.workflow(name="answer")(answered)

    if what == "die":

        def die() -> None:
            (folder / "standing").touch()
            time.sleep(60)
            os._exit(1)

        till.then["pay"] = die
    DBOS.launch()
    history = (folder / "history.json").read_text()

    async def started(name: str) -> Any:
        if what == "recover":
            return await (await DBOS.retrieve_workflow_async(name)).get_result()
        with SetWorkflowID(name):
            handle = await DBOS.start_workflow_async(answer, history)
        return await handle.get_result()

    try:
        if what == "one by one":
            outcomes = [await outcome(started(name)) for name in ids]
        else:
            outcomes = [*await asyncio.gather(*(outcome(started(name)) for name in ids))]
    finally:
        DBOS.destroy()
    return [
        found if isinstance(found, str) else f"{type(found).__name__}: {found}"
        for found in outcomes
    ]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))) + "\n")
