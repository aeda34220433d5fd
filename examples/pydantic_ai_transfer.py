"""An agent asks before it transfers money, and the approval arrives twice.

The model is a function, so that no key is needed. After the first answer, the model is down:
the transfers are done, and the run goes on with their receipt instead of doing them again.

Prints:

    approvals served: 1
    approvals refused: 1, with HTTP status 409
    told after all: both transfers are done
    transfers sent: 2
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from remit_gates import ResumeRefused, current_claim
from remit_gates.pydantic_graph import ConsumeOnce


class Bank:
    """Stands for a payment provider, and says whether the model can be reached."""

    def __init__(self) -> None:
        self.transfers: list[str] = []
        self.model_is_down = False


def build(bank: Bank, folder: Path) -> Agent[Bank, Any]:
    """The agent, as every worker has it."""

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(part.part_kind == "tool-return" for part in messages[-1].parts):
            if bank.model_is_down:
                raise ConnectionError("the model cannot be reached")
            return ModelResponse([TextPart("both transfers are done")])
        return ModelResponse(
            [ToolCallPart("transfer", {"amount": amount}, f"call-{amount}") for amount in (10, 20)]
        )

    agent: Agent[Bank, Any] = Agent(
        FunctionModel(model),
        deps_type=Bank,
        output_type=[str, DeferredToolRequests],
        # The one line. The calls of one response are one question, answered once.
        capabilities=[ConsumeOnce(store=f"sqlite:///{folder / 'claims.db'}")],
    )

    @agent.tool(requires_approval=True)
    async def transfer(ctx: RunContext[Bank], amount: int) -> str:
        # One key for the question; each call adds what tells it from the others.
        claim = current_claim()
        key = f"{claim.idempotency_key}-{ctx.tool_call_id}" if claim else None
        ctx.deps.transfers.append(f"${amount} {key}")
        await asyncio.sleep(0.2)  # a slow bank: the time in which duplicates arrive
        return f"sent ${amount}"

    return agent


async def main(folder: Path) -> None:
    bank = Bank()
    agent = build(bank, folder)
    asked = await agent.run("Send $10 and $20.", deps=bank)
    history = asked.all_messages()
    answer = DeferredToolResults(
        approvals={call.tool_call_id: True for call in asked.output.approvals}
    )

    async def deliver() -> Any:
        try:
            result = await agent.run(
                message_history=history, deferred_tool_results=answer, deps=bank
            )
        except (ResumeRefused, ConnectionError) as error:
            return error
        return result.output

    bank.model_is_down = True
    outcomes = await asyncio.gather(deliver(), deliver())
    refused = [error for error in outcomes if isinstance(error, ResumeRefused)]
    print("approvals served:", len(outcomes) - len(refused))
    print(f"approvals refused: {len(refused)}, with HTTP status {refused[0].http_status}")

    # The sender tries once more. The transfers are done, and what they returned is on record.
    bank.model_is_down = False
    again = await deliver()
    result = await agent.run(message_history=[*history, *again.receipt], deps=bank)
    print("told after all:", result.output)
    print("transfers sent:", len(bank.transfers))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
