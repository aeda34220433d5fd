"""What a delivery is, judged from its input, what is parked and the record; purely.

A pause is named by its checkpoint and its interrupt id. Where interrupts of one node share
an id (before LangGraph 1.2.20), the number of answers that the task already had tells
them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.base import CheckpointTuple

from remit_gates._digest import digest
from remit_gates._model import (
    Answer,
    Consumption,
    Delivery,
    Holder,
    Intent,
    Phase,
    Reason,
    Record,
)
from remit_gates._transcript import transcript


# LangGraph's reserved channels, from its `_internal/_constants.py`.
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
ERROR: Final = "__error__"
NO_WRITES: Final = "__no_writes__"
CONTROL: Final = frozenset((INTERRUPT, RESUME, ERROR, "__error_source_node__"))
NULL_TASK: Final = "00000000-0000-0000-0000-000000000000"

WRITTEN_UNDER: Final = "remit_token"
"""Where the metadata of a checkpoint holds the token of the claim that it was written under."""

EDITS: Final = frozenset(("update", "fork"))
"""Sources of the checkpoints that `update_state` writes."""

Write = tuple[str, str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a graph, as far as its input and config tell.

    Attributes:
        run: The thread id.
        intent: `ANSWER`, `CONTINUE` or `START`.
        named: Answers by interrupt id, for an answer by id.
        bare: The answer, for one that names nothing.
        checkpoint: The checkpoint id that the config names, if any.
        fork: Whether `remit_fork` asks for a branch.
        breakpoints: Whether the graph has static breakpoints.
        delivery: `remit_delivery`.
        actor: `remit_actor`.
        ordinal: Whether interrupt ids tell the interrupts of one node apart.
        recorded: Whether the record is to keep the answers.
    """

    run: str
    intent: Intent
    named: Mapping[str, Any] | None = None
    bare: Any = None
    checkpoint: str | None = None
    fork: bool = False
    breakpoints: bool = False
    delivery: str | None = None
    actor: str | None = None
    ordinal: bool = True
    recorded: bool = False

    @property
    def answers(self) -> bool:
        """Whether it carries an answer."""
        return self.intent is Intent.ANSWER


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the saver gave.

    Attributes:
        parked: The checkpoint that the run starts from; None for an unknown thread.
        head: Id of the thread's latest checkpoint.
        below: Where somebody edited the state since the run last wrote: the checkpoints
            below that edit, down to the run's own.
    """

    parked: CheckpointTuple | None
    head: str | None
    below: tuple[CheckpointTuple, ...] = ()

    @property
    def position(self) -> str:
        """Id of the checkpoint that the run starts from; empty for an unknown thread."""
        return "" if self.parked is None else str(self.parked.checkpoint["id"])

    @property
    def writes(self) -> Sequence[Write]:
        """What is pending at that checkpoint."""
        return (self.parked and self.parked.pending_writes) or ()

    @property
    def edited(self) -> str | None:
        """The pause of a run whose state was edited since it asked (`update_state`). No
        interrupt is on record there: LangGraph asks again, and hands over the answer."""
        edited = self.parked is not None and self.parked.metadata.get("source") == "update"
        return f"{self.position}:edited" if edited else None

    @property
    def superseded(self) -> bool:
        """Whether the thread went on past the checkpoint that the config names."""
        return self.parked is not None and self.position != self.head

    def moved(self, record: Record) -> bool:
        """Whether the run went on to other work, without a claim, since the last one: it
        stands neither where that claim began nor where that claim wrote."""
        if self.parked is None or not record.origin:
            return False
        return not any(
            at.checkpoint["id"] == record.origin or at.metadata.get(WRITTEN_UNDER) == record.last
            for at in (self.parked, *self.below)
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """One interrupt that waits.

    Attributes:
        pause: Its name in the record.
        interrupt: Its id.
        task: The task that raised it.
        taken: How many answers that task has on record.
        repeated: Whether an earlier question had the same id.
        value: What is asked.
    """

    pause: str
    interrupt: str
    task: str
    taken: int
    repeated: bool
    value: Any = None


def waiting(
    checkpoint: str, writes: Iterable[Write], record: Record, *, ordinal: bool
) -> tuple[Waiting, ...]:
    """The interrupts that wait at a checkpoint, in the order of its pending writes."""
    out = []
    for task, found in _tasks(writes).items():
        if "done" in found:
            continue
        taken = len(many(found.get(RESUME, ())))
        for interrupt in many(found.get(INTERRUPT, ())):
            name = f"{checkpoint}:{interrupt.id}"
            if ordinal:
                # An earlier LangGraph may have left its entry, under its own kind of name.
                old = (entry.pause for entry in record.consumptions)
                name = next((pause for pause in old if pause.startswith(f"{name}:")), name)
            else:
                # A task that failed after an answer has taken in one more than the
                # question on record; only the ledger tells that from the next question.
                before = record.consumption(f"{name}:{taken - 1}")
                failed = before is not None and before.phase is not Phase.SETTLED
                name = f"{name}:{taken - 1 if failed else taken}"
            entry = record.consumption(name)
            repeated = not ordinal and (
                taken > 0 or (entry is not None and entry.reopened == "anew")
            )
            out.append(Waiting(name, interrupt.id, task, taken, repeated, interrupt.value))
    return tuple(out)


def judge(request: Request, loaded: Loaded, record: Record, holder: Holder) -> Delivery:
    """What the call that `request` describes comes to, given what was loaded."""
    position = loaded.position

    def delivery(intent: Intent, **more: Any) -> Delivery:
        return Delivery(
            intent=intent,
            holder=holder,
            id=request.delivery,
            actor=request.actor,
            position=position,
            **more,
        )

    if request.intent is Intent.START:
        return delivery(Intent.START, bound=True)
    if loaded.superseded:
        if request.intent is Intent.CONTINUE or request.fork:
            return delivery(Intent.FORK, bound=True)
        return delivery(Intent.ANSWER, bound=True, reason=Reason.SUPERSEDED)
    waits = waiting(position, loaded.writes, record, ordinal=request.ordinal)
    if request.intent is Intent.CONTINUE:
        # What was released is asked again where it waits. Where the run has moved on past
        # it, a continue goes on with it.
        if loaded.moved(record):
            return delivery(Intent.CONTINUE, moved=True)
        shown = {wait.pause for wait in waits}
        gone = (entry.pause for entry in record.consumptions if released(entry))
        return delivery(
            Intent.CONTINUE, disturbs=tuple(pause for pause in gone if pause not in shown)
        )
    if request.named is not None:
        return _by_id(request, request.named, loaded, waits, record, delivery)
    if waits:
        answers = tuple(_answer(request, wait, request.bare) for wait in waits)
        return delivery(Intent.ANSWER, answers=answers)
    if loaded.edited is not None:
        return delivery(
            Intent.ANSWER,
            answers=(_given(request, loaded.edited, request.bare),),
        )
    if not record.consumptions and loaded.parked is not None and request.breakpoints:
        # At a static breakpoint, LangGraph takes any resume for a bare continue.
        return delivery(Intent.CONTINUE)
    known = {entry.pause: request.bare for entry in record.consumptions[-1:]}
    return _late(request, loaded, (), known, record, delivery)


def _by_id(
    request: Request,
    named: Mapping[str, Any],
    loaded: Loaded,
    waits: tuple[Waiting, ...],
    record: Record,
    delivery: Callable[..., Delivery],
) -> Delivery:
    by_id = {wait.interrupt: wait for wait in waits}
    found = [by_id[name] for name in named if name in by_id]
    answers = tuple(_answer(request, wait, named[wait.interrupt]) for wait in found)
    if len(found) == len(named):
        others = (wait.pause for wait in waits if wait not in found)
        return delivery(
            Intent.ANSWER,
            answers=answers,
            bound=not any(wait.repeated for wait in found),
            disturbs=tuple(pause for pause in others if record.closed(pause) is not None),
        )
    known = {}
    for name, value in named.items():
        entries = [entry for entry in record.consumptions if entry.pause.split(":")[1] == name]
        if name not in by_id and entries:
            known[entries[-1].pause] = value
    # A name that nobody knows makes the rest void as well: no part of an answer is served.
    whole = len(found) + len(known) == len(named)
    return _late(request, loaded, answers, known, record, delivery, bound=True, whole=whole)


def _late(
    request: Request,
    loaded: Loaded,
    answers: tuple[Answer, ...],
    known: Mapping[str, Any],
    record: Record,
    delivery: Callable[..., Delivery],
    *,
    bound: bool = False,
    whole: bool = True,
) -> Delivery:
    """An answer of which some pause does not wait. It is void, unless it is the same as
    the one with which a run went on that then did not end: such a run may be gone on
    with."""
    late = tuple(_given(request, pause, value) for pause, value in known.items())
    unfinished = {entry.pause: entry for entry in record.unfinished}
    moved = loaded.moved(record)
    same = loaded.parked is not None and not answers and bool(late) and whole and not moved
    for answer in late:
        entry = unfinished.get(answer.pause)
        same = (
            same
            and entry is not None
            and (
                (answer.digest is not None and answer.digest == entry.digest)
                or (request.delivery is not None and request.delivery == entry.delivery)
            )
        )
    passed = any(released(entry) for entry in map(record.consumption, known) if entry)
    reason = Reason.SUPERSEDED if passed or moved else Reason.NOT_PARKED
    return delivery(
        Intent.ANSWER,
        answers=(*answers, *late),
        bound=bound,
        moved=moved,
        reason=None if same else reason,
    )


def released(entry: Consumption) -> bool:
    """Whether `entry` was re-opened by `release()`, and not by a question."""
    return (
        entry.reopened is not None
        and entry.outcome is not None
        and entry.outcome.state == "released"
    )


def _answer(request: Request, wait: Waiting, value: Any) -> Answer:
    return _given(request, wait.pause, value, wait.taken)


def _given(request: Request, pause: str, value: Any, taken: int = 0) -> Answer:
    return Answer(pause, digest(value, request.run, pause), taken, text=written(request, value))


def written(request: Request, value: Any) -> str | None:
    """What the record is to keep of the answer `value` besides its digest."""
    return transcript(value) if request.recorded and request.answers else None


def _tasks(writes: Iterable[Write]) -> dict[str, dict[str, Any]]:
    """Per task, the last value of each control channel, and whether it has output."""
    tasks: dict[str, dict[str, Any]] = {}
    for task, channel, value in writes:
        if task != NULL_TASK:
            tasks.setdefault(task, {})[channel if channel in CONTROL else "done"] = value
    return tasks


def many(value: Any) -> Sequence[Any]:
    """`value` as LangGraph writes several of it, also where it wrote one bare."""
    return value if isinstance(value, (list, tuple)) else [value]
