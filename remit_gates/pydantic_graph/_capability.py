"""A capability of pydantic-ai: of several runs that answer the same tool calls, one is served.

The claim is taken before the first node of a run that carries results, and, as a backstop,
before the first tool and the first model request, so that it comes first however the run is
driven. A run that answers nothing claims nothing.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final, TypeVar

from pydantic_ai import Agent, RunContext, capabilities
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest

from remit_gates._claim import ActiveClaim
from remit_gates._digest import digest
from remit_gates._gate import find_claims_with
from remit_gates._model import Outcome, RunKey
from remit_gates._policy import Policy
from remit_gates._transcript import transcript
from remit_gates.errors import OutcomeUnknown, ResumeRefused, StoreError, UsageError
from remit_gates.pydantic_graph import _versions
from remit_gates.pydantic_graph._calls import Parked, answers, parked
from remit_gates.pydantic_graph._passing import (
    DURABLE_LEASE,
    Held,
    Here,
    Passing,
    Question,
    Through,
    durably_ended,
    durably_entered,
    with_receipt,
)
from remit_gates.pydantic_graph._stores import opened


Method = TypeVar("Method", bound=Callable[..., Any])


def _operation(name: str) -> Callable[[Method], Method]:
    """An operation of a durable engine, where a capability can have one: from 2.36 on."""
    made: Callable[[str], Callable[[Method], Method]] | None
    made = getattr(capabilities, "durable_operation", None)
    return (lambda method: method) if made is None else made(name)


_claim: Final[ContextVar[ActiveClaim | None]] = ContextVar("remit_gates_tool_claim", default=None)


def _claim_here() -> ActiveClaim | None:
    return _claim.get()


class ConsumeOnce(AbstractCapability[Any]):
    """The gate of an agent: `Agent(…, capabilities=[ConsumeOnce(store=…)])`, or per run.

    Args:
        store: Where the records live: a URL, a driver connection or pool, or a store, which
            all workers share.
        policy: The choices that the protocol leaves open.
        namespace: One's own partition of a shared store.
        scope_key: Names the conversation where its messages do not, as when a client keeps
            them: a text, or a function of the run's context. Needed only there.
        delivery: The delivery id: a redelivery is recognised by it.
        actor: Who answers; kept in the record.
        receipts: Whether a record keeps what the tools returned until the run has ended, so
            that a run whose model call failed can go on without them.

    Raises:
        UsageError: The store is none that is known.
        MissingExtra: Its driver is not installed.
        UnsupportedVersion: The installed pydantic-ai cannot be gated.
    """

    def __init__(
        self,
        store: Any,
        *,
        policy: Policy = Policy(),
        namespace: str = "",
        scope_key: str | Callable[[RunContext[Any]], str] | None = None,
        delivery: str | None = None,
        actor: str | None = None,
        receipts: bool = True,
    ) -> None:
        _versions.ai()
        self.id = "remit-gates"
        self._store = opened(store)
        self._policy = policy
        self._namespace = namespace
        self._scope_key = scope_key
        self._delivery = delivery
        self._actor = actor
        self._receipts = receipts
        self._begin()
        find_claims_with(_claim_here)

    def _begin(self) -> None:
        self._found: Parked | None = None
        self._results: Any = None
        self._held: Held | None = None
        self._refused: ResumeRefused | None = None
        self._started = False
        self._noted = False
        self._asked_model = False
        self._hooked = False
        self._lock = asyncio.Lock()

    def get_ordering(self) -> CapabilityOrdering:
        """Outermost: nothing of a refused run comes before the refusal."""
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[Any]) -> ConsumeOnce:
        """See `AbstractCapability`. Several runs go on at once, each with a claim of its own."""
        mine: ConsumeOnce = object.__new__(type(self))
        vars(mine).update(vars(self))
        mine._begin()
        return mine

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """See `AbstractCapability`."""
        self._found = parked(ctx.messages)

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """See `AbstractCapability`.

        Raises:
            ResumeRefused: The calls that the run answers were answered before.
        """
        self._hooked = True
        if Agent.is_user_prompt_node(node) and node.deferred_tool_results is not None:
            given = node.deferred_tool_results
            self._results = {"calls": dict(given.calls), "approvals": dict(given.approvals)}
            self._found = parked(ctx.messages)
            await self._claimed(ctx)
        return node

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """See `AbstractCapability`."""
        mine = self._found is not None and call.tool_call_id in self._found.calls
        if not mine or self._asked_model:
            return await handler(args)
        await self._claimed(ctx)
        self._started = True
        token = _claim.set(self._held.claim if self._held else None)
        try:
            return await handler(args)
        finally:
            with suppress(ValueError):
                _claim.reset(token)

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """See `AbstractCapability`."""
        if self._held and Agent.is_call_tools_node(node) and Agent.is_model_request_node(result):
            await self._note([result.request])
        return result

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        """See `AbstractCapability`."""
        # Up to 2.20 a bare `async for` over the nodes calls no hook for them. With one, there is
        # no doubt what a run answers.
        answering = self._held is not None or not self._hooked
        if self._found is not None and answering and not self._asked_model:
            done = _results(request_context.messages, self._found.calls)
            if done is not None:
                await self._claimed(ctx)
                await self._note([done])
        self._asked_model = True
        return request_context

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """See `AbstractCapability`."""
        try:
            result = await handler()
        except BaseException as error:
            done = self._started or self._noted
            await self._leave(Outcome("failed", detail=type(error).__name__) if done else None)
            raise
        if self._held is not None and self._found is not None:
            again = parked(result.all_messages())
            asks = again is not None and again.pause == self._found.pause
            waiting = (self._found.pause,) if asks else ()
            await self._leave(Outcome("parked" if asks else "finished", waiting=waiting))
        return result

    async def _claimed(self, ctx: RunContext[Any]) -> None:
        """Have the claim, or raise. Tools that run at once have it together."""
        async with self._lock:
            if self._refused is not None:
                raise self._refused
            if self._held is not None or self._found is None:
                return
            question = self._question(ctx, self._found)
            try:
                self._held = await self._enter(ctx, question)
            except ResumeRefused as error:
                self._refused = with_receipt(error, ModelMessagesTypeAdapter.validate_json)
                raise self._refused from None

    def _question(self, ctx: RunContext[Any], found: Parked) -> Question:
        scope = self._scope_key(ctx) if callable(self._scope_key) else self._scope_key
        name = scope if scope is not None else found.run
        if name is None:
            raise UsageError(
                "The response whose calls are answered has neither a conversation id nor a run"
                " id, so that equal calls of two conversations could not be told apart. Nothing"
                " ran and nothing was recorded. Pass scope_key= to ConsumeOnce: the id of the"
                " chat, for instance."
            )
        key = RunKey("pydantic-ai", self._namespace, name)
        same = text = None
        if self._results is not None:
            same = digest(self._results, name, found.pause)
            text = transcript(self._results) if self._policy.record_answers else None
        return Question(key, found, same, text, self._delivery, self._actor)

    async def _enter(self, ctx: RunContext[Any], question: Question) -> Held:
        if not getattr(ctx, "in_durable_context", False):
            return await Here.enter(Passing(self._store, self._policy), question)
        key, found = question.key, question.found
        nonce = await self._minted(ctx)
        token, before = await self._durably_enter(
            ctx, [key.run, found.pause, question.digest, question.text], sorted(found.calls), nonce
        )

        async def end(token: int, state: str, detail: str, before: str) -> None:
            await self._durably_end(ctx, [key.run, state, detail, before], token)

        return Through(token, before, end)

    # The names of these operations are kept by the engine: they never change.

    @_operation("mint")
    async def _minted(self, ctx: RunContext[Any]) -> str:
        return uuid.uuid4().hex

    @_operation("enter")
    async def _durably_enter(
        self, ctx: RunContext[Any], asked: list[str | None], calls: list[str], nonce: str
    ) -> tuple[int, str]:
        run, pause, same, text = asked
        question = Question(
            RunKey("pydantic-ai", self._namespace, run or ""),
            Parked(run, pause or "", frozenset(calls)),
            same,
            text,
            self._delivery,
            self._actor,
        )
        return await durably_entered(self._durable(), question, nonce)

    @_operation("end")
    async def _durably_end(self, ctx: RunContext[Any], ending: list[str], token: int) -> None:
        run, state, detail, before = ending
        key = RunKey("pydantic-ai", self._namespace, run)
        await durably_ended(self._durable(), key, token, state, detail, before)

    def _durable(self) -> Passing:
        lease = max(self._policy.lease, DURABLE_LEASE)
        return Passing(self._store, replace(self._policy, lease=lease))

    async def _note(self, messages: list[Any]) -> None:
        if self._held is not None and not self._noted:
            self._noted = True
            if self._receipts:
                receipt = ModelMessagesTypeAdapter.dump_json(messages).decode()
                # The tools have run: a store that does not answer now must not undo that.
                with suppress(StoreError, OutcomeUnknown):
                    await self._held.note(receipt)

    async def _leave(self, outcome: Outcome | None) -> None:
        held, self._held = self._held, None
        if held is not None:
            await held.leave(outcome)


def _results(messages: Sequence[Any], calls: frozenset[str]) -> ModelRequest | None:
    """The results of `calls` in the last request of `messages`; None if it has none."""
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest):
        return None
    own: list[Any] = [*last.parts]
    parts = [part for part in own if answers(part) and part.tool_call_id in calls]
    return ModelRequest(parts=parts) if parts else None
