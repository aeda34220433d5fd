"""How one run of an agent holds its claim: in this process, with a heartbeat; or through a
durable engine, whose steps may run elsewhere and again, and which itself sees to liveness."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from remit_gates._claim import ActiveClaim
from remit_gates._codec import decode, encode
from remit_gates._drive import adrive
from remit_gates._heartbeat import HEARTBEAT
from remit_gates._keeper import Keeper
from remit_gates._liveness import mint
from remit_gates._model import Answer, Holder, Outcome, Reason, Record, RunKey
from remit_gates._ops import Flow, Now, Read
from remit_gates._passage import Denied, Passage, leave, note
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates._refusal import Verbs, refusal
from remit_gates.errors import ResumeRefused
from remit_gates.pydantic_graph._calls import Parked, judge
from remit_gates.stores import AsyncStore


VERBS: Final = Verbs(
    go_on="go on with message_history=[*history, *error.receipt] where there is a receipt",
    ask="look at the messages that the run before this one left",
    fork="give the run another scope_key",
)

DURABLE_LEASE: Final = 86_400.0
"""Seconds that a claim lives under a durable engine, which renews none."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a run of an agent answers.

    Attributes:
        key: The name of the run that asked.
        found: What waits.
        digest: Digest of the results that the caller gave; None where there are none.
        text: Those results as JSON text, where the policy records answers.
        delivery: The delivery id.
        actor: Who answers.
    """

    key: RunKey
    found: Parked
    digest: str | None = None
    text: str | None = None
    delivery: str | None = None
    actor: str | None = None


class Held(Protocol):
    """A claim of a run of an agent."""

    @property
    def claim(self) -> ActiveClaim | None:
        """For the tools; None where its process is not theirs."""

    async def note(self, receipt: str) -> None:
        """Keep what the tools returned."""

    async def leave(self, outcome: Outcome | None) -> None:
        """Give it back."""


class Passing:
    """Admits runs of an agent.

    Args:
        store: Where the records are.
        policy: The user's choices.
    """

    def __init__(self, store: AsyncStore, policy: Policy) -> None:
        self.store = store
        self.keeper = Keeper(store, policy)
        self.port = StorePort(store, asyncio.sleep)

    async def enter(self, question: Question, holder: Holder) -> ActiveClaim:
        """The claim on `question`.

        Raises:
            ResumeRefused: It was answered before, or is being answered.
        """

        def judged(loaded: Any, record: Record) -> Any:
            answer = Answer(question.found.pause, question.digest, text=question.text)
            given = (answer, holder, question.delivery, question.actor)
            return judge(question.found, *given, record)

        flow = self.keeper.admit(question.key, holder, judged)
        result = await adrive(flow, self.port)
        if isinstance(result, Denied):
            raise refusal(result, VERBS)
        return result


class Here:
    """A claim of this process."""

    def __init__(self, passing: Passing, claim: ActiveClaim) -> None:
        self._passing = passing
        self.claim: ActiveClaim | None = claim
        self._held = claim

    @classmethod
    async def enter(cls, passing: Passing, question: Question) -> Here:
        """See `Passing.enter`."""
        return cls(passing, await passing.enter(question, mint()))

    async def note(self, receipt: str) -> None:
        keeper = self._passing.keeper
        await adrive(keeper.note(self._held, receipt), self._passing.port)

    async def leave(self, outcome: Outcome | None) -> None:
        keeper = self._passing.keeper
        await adrive(keeper.dismiss(self._held, outcome), self._passing.port)


class Through:
    """A claim whose every step is an operation of a durable engine.

    Args:
        token: The token of the claim.
        before: The record as it was before it, as text.
        end: Ends it, or keeps a receipt: the operation of the engine.
    """

    claim: ActiveClaim | None = None

    def __init__(self, token: int, before: str, end: Callable[..., Awaitable[None]]) -> None:
        self._token = token
        self._before = before
        self._end = end

    async def note(self, receipt: str) -> None:
        await self._end(self._token, "note", receipt, self._before)

    async def leave(self, outcome: Outcome | None) -> None:
        state, detail = "withdrawn", ""
        if outcome is not None:
            state, detail = outcome.state, outcome.detail or " ".join(outcome.waiting)
        await self._end(self._token, state, detail, self._before)


async def durably_entered(passing: Passing, question: Question, nonce: str) -> tuple[int, str]:
    """Token of the claim, and the record before it as text. Done again with the same nonce, by
    an engine that did not learn that it was done, it finds its own claim."""
    # Not a process's: whoever recovers the workflow has the claim too.
    holder = Holder("durable", 0, "", nonce)
    snapshot = await passing.store.read(question.key)
    active = snapshot.record.claim
    if active is not None and active.holder == holder:
        before = tuple(e for e in snapshot.record.consumptions if e.token != active.token)
        return active.token, encode(replace(snapshot.record, claim=None, consumptions=before))
    claim = await passing.enter(question, holder)
    HEARTBEAT.remove(claim.beat)
    return claim.token, encode(claim.passage.before)


async def durably_ended(
    passing: Passing, key: RunKey, token: int, state: str, detail: str, before: str
) -> None:
    """End the claim with `token`, or note its receipt. Done again, it changes nothing."""

    def flow() -> Flow[bool]:
        snapshot = yield Read(key)
        claim = snapshot.record.claim
        if claim is None or claim.token != token or snapshot.version is None:
            return False
        now = yield Now()
        passage = Passage(
            run=key,
            before=decode(before),
            record=snapshot.record,
            claim=claim,
            replaced=None,
            version=snapshot.version,
            entered=now - (snapshot.now - claim.since),
            deadline=now,
            loaded=None,
            delivery=None,  # type: ignore[arg-type]
        )
        if state == "note":
            return (yield from note(passage, detail))
        outcome = None
        if state != "withdrawn":
            waiting = tuple(detail.split()) if state == "parked" else ()
            said = detail if state == "failed" else None
            outcome = Outcome(state, waiting=waiting, detail=said)  # type: ignore[arg-type]
        return (yield from leave(passage, outcome))

    await adrive(flow(), passing.port)


def with_receipt(error: ResumeRefused, load: Callable[[str], Any]) -> ResumeRefused:
    """`error`, with what the tools returned that ran for the answer, where their run is over
    and did not finish."""
    entry = error.consumption
    over = error.reason is not Reason.IN_PROGRESS and entry is not None
    if over and entry is not None and entry.receipt is not None:
        error.receipt = load(entry.receipt)
    return error
