"""Every judgement of the LangGraph adapter on a small domain: what a thread may look like,
what may be asked of it, and every record that up to two served deliveries leave behind.

Records are made by the shipped decisions from the shipped judgements, so that their names
are the adapter's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt

from remit_gates._decide import Granted, Refused, decide, release, settle
from remit_gates._model import Delivery, Holder, Intent, Outcome, Phase, Reason, Record
from remit_gates._policy import Policy
from remit_gates.langgraph._pauses import (
    ERROR,
    INTERRUPT,
    RESUME,
    WRITTEN_UNDER,
    Loaded,
    Request,
    Write,
    judge,
    waiting,
)


Judgement = Callable[[Request, Loaded, Record, Holder], Delivery]

FIRST: Final = Holder("host", 1, "0", "first")
LATER: Final = Holder("host", 2, "0", "later")
POLICIES: Final = (Policy(), Policy(on_failure="retry", on_abandoned="serve"))
"""The strictest and the most generous: what any policy grants, the last one does."""


def questions(*ids: str, told: int = 0, failed: bool = False, done: bool = False) -> list[Write]:
    """The pending writes of a checkpoint at which each of `ids` waits, in a task of its own."""
    writes: list[Write] = [("done", "state", 1)] if done else []
    for number, name in enumerate(ids):
        task = f"task{number}"
        writes.append((task, INTERRUPT, [Interrupt("?", id=name)]))
        if told:
            writes.append((task, RESUME, ["yes"] * told))
        if failed:
            writes.append((task, ERROR, "ValueError()"))
    return writes


PENDING: Final[tuple[list[Write], ...]] = (
    [],
    questions("i"),
    questions("i", told=1),
    questions("i", told=1, failed=True),
    questions("i", "j"),
    questions("i", "j", told=1),
    questions("j", done=True),
)


def thread(name: str, writes: list[Write], source: str = "loop", wrote: int = 0) -> Loaded:
    metadata: Any = {"source": source, **({WRITTEN_UNDER: wrote} if wrote else {})}
    parked = CheckpointTuple({}, cast(Any, {"id": name}), metadata, None, writes)
    return Loaded(parked, name)


def threads() -> Iterator[Loaded]:
    """What may be loaded: where the run was, and further on, by a claim, by none, or edited."""
    yield Loaded(None, None)
    for writes in PENDING:
        yield thread("c0", writes)
        yield thread("c0", writes, "update")
        yield thread("c1", writes)
        yield thread("c1", writes, wrote=1)
    yield replace(thread("c0", PENDING[1]), head="c1")


def requests() -> Iterator[Request]:
    """What may be asked."""
    named: tuple[dict[str, Any] | None, ...] = (None, {"i": "yes"}, {"j": "no"})
    named = (*named, {"i": "yes", "j": "no"}, {"i": "yes", "unknown": "yes"})
    for ordinal, delivery in product((True, False), (None, "x")):
        both: dict[str, Any] = {"run": "run", "ordinal": ordinal, "delivery": delivery}
        yield Request(intent=Intent.START, **both)
        yield Request(intent=Intent.CONTINUE, **both)
        for names in named:
            yield Request(intent=Intent.ANSWER, bare="yes", named=names, **both)
        yield Request(intent=Intent.ANSWER, bare="no", fork=True, breakpoints=True, **both)


def aftermath(record: Record, loaded: Loaded, ordinal: bool) -> Iterator[Record]:
    """What a served delivery may leave behind: it runs, died, ended in each way, was released."""
    yield record
    claim = record.claim
    assert claim is not None
    waits = waiting(loaded.position, loaded.writes, record, ordinal=ordinal)
    names = tuple(wait.pause for wait in waits)
    outcomes = (
        Outcome("finished"),
        Outcome("parked", waiting=names),
        Outcome("parked", waiting=("elsewhere",)),
        Outcome("failed"),
    )
    for outcome, applied in product(outcomes, (False, True)):
        after = settle(record, claim.token, outcome, 0.0, applied)
        assert after is not None
        yield after
        if outcome.state == "failed":
            yield freed(after)
    yield freed(record)


def freed(record: Record) -> Record:
    after = release(record, 0.0, 0.0)
    assert isinstance(after, Record)
    return after


def records(deep: int, pending: Sequence[list[Write]] = PENDING) -> set[Record]:
    """All records that `deep` served deliveries, one after the other, may leave behind."""
    found = {Record()}
    edge = found
    for _ in range(deep):
        new: set[Record] = set()
        here = (thread("c0", writes) for writes in pending)
        for before, request, loaded in product(edge, tuple(requests()), tuple(here)):
            delivery = judge(request, loaded, before, FIRST)
            verdict = decide(before, delivery, 0.0, POLICIES[-1], 0.0)
            if isinstance(verdict, Granted):
                new.update(aftermath(verdict.record, loaded, request.ordinal))
        edge = new - found
        found = found | new
    return found


class Case(NamedTuple):
    """One judgement."""

    request: Request
    loaded: Loaded
    record: Record


def cases(known: Iterable[Record]) -> Iterator[Case]:
    for record, request, loaded in product(known, tuple(requests()), tuple(threads())):
        yield Case(request, loaded, record)


def breach(case: Case, judgement: Judgement = judge) -> str | None:
    """What is wrong with one judgement, if anything is."""
    request, loaded, record = case
    delivery = judgement(request, loaded, record, LATER)
    old = request.answers and loaded.superseded and not request.fork
    if old and delivery.reason is not Reason.SUPERSEDED:
        return "an answer to an older checkpoint is not superseded"
    if delivery.intent is not Intent.ANSWER and delivery.answers:
        return "what is no answer answers"
    if request.intent is not Intent.ANSWER and delivery.intent is Intent.ANSWER:
        return "an answer out of nothing"
    served = delivery.intent is Intent.ANSWER and delivery.reason is None
    if delivery.bound and served and request.named is None:
        return "a bare answer is bound"
    for policy in POLICIES:
        wrong = _decided(case, delivery, policy)
        if wrong is not None:
            return wrong
    return None


def _decided(case: Case, delivery: Delivery, policy: Policy) -> str | None:
    request, loaded, record = case
    verdict = decide(record, delivery, 0.0, policy, 0.0)
    if isinstance(verdict, Refused) or delivery.intent is not Intent.ANSWER:
        return None
    if delivery.reason is not None:
        return "what is void is served"
    if not delivery.answers:
        return "an answer to nothing is served"
    if request.named is not None and len(delivery.answers) != len(request.named):
        return "a part of an answer is served"
    waits = waiting(loaded.position, loaded.writes, record, ordinal=request.ordinal)
    open_ = {wait.pause for wait in waits} | {str(loaded.edited)}
    unfinished = {entry.pause for entry in record.unfinished}
    for answer in delivery.answers:
        if answer.pause not in open_ | unfinished:
            return "an answer is served to what neither waits nor is unfinished"
        entry = record.closed(answer.pause)
        if entry is not None and entry.phase is Phase.SETTLED:
            return "a question is answered twice"
        if answer.pause not in open_ and entry is not None:
            redelivered = request.delivery is not None and request.delivery == entry.delivery
            if answer.digest != entry.digest and not redelivered:
                return "another answer is served to what no longer waits"
    return None


def trusting(request: Request, loaded: Loaded, record: Record, holder: Holder) -> Delivery:
    """A broken judgement: nothing is void."""
    return replace(judge(request, loaded, record, holder), reason=None)


def bold(request: Request, loaded: Loaded, record: Record, holder: Holder) -> Delivery:
    """A broken judgement: every answer names its question."""
    return replace(judge(request, loaded, record, holder), bound=True)
