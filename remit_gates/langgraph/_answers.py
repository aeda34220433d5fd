"""Which recorded answers a granted run may see: its own, and no other.

LangGraph never deletes the answer of a resume from the checkpoint that it was given to,
and hands it to the next interrupt that asks. What a saver returns to a granted run is
therefore cut down, purely, to what the record says that this run works on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from remit_gates._digest import digest
from remit_gates._model import Consumption, Delivery, Intent, Record
from remit_gates.langgraph._pauses import (
    CONTROL,
    ERROR,
    INTERRUPT,
    NULL_TASK,
    RESUME,
    Loaded,
    Request,
    Write,
    many,
    released,
    waiting,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What LangGraph gets to work with.

    Attributes:
        parked: The checkpoint, with the answers that belong to this run.
        resume: Whether the caller's answer is to be applied. Where the run has moved on
            past its pause, it only goes on.
        again: Interrupt ids whose earlier answer a task in a subgraph has on record, and
            must not use.
    """

    parked: CheckpointTuple | None
    resume: bool = True
    again: frozenset[str] = frozenset()


def prepare(request: Request, loaded: Loaded, record: Record, delivery: Delivery) -> Prepared:
    """What a granted run gets; `record` is the one that it was granted on."""
    parked = loaded.parked
    if parked is None or delivery.intent is Intent.START:
        return Prepared(parked)
    if delivery.intent is Intent.FORK:
        return Prepared(_with(parked, _forked(loaded)) if request.answers else parked)
    waits = waiting(loaded.position, loaded.writes, record, ordinal=request.ordinal)
    if delivery.intent is Intent.ANSWER:
        taken = {answer.pause: answer.taken for answer in delivery.answers}
        cuts = {}
        again = set()
        for wait in waits:
            before = record.consumption(wait.pause)
            if wait.pause in taken and before is not None and _on_record(before):
                cuts[wait.task] = before.taken
                if before.applied:
                    again.add(wait.interrupt)
        writes = _cut(loaded, cuts, keep_null=False)
        resume = loaded.edited in taken or any(wait.pause in taken for wait in waits)
        return Prepared(_with(parked, writes), resume, frozenset(again))
    return _continued(request, loaded, parked, record)


def takes_in(run: str, record: Record, token: int, value: Any) -> bool:
    """Whether `value`, the list of answers that a task has taken in, holds one of the claim
    with `token`. A task also writes that list when it asks again with what it had before."""
    answers = many(value)
    return any(
        entry.token == token and len(answers) > entry.taken and _is(run, entry, answers[-1])
        for entry in record.consumptions
    )


def _on_record(entry: Consumption) -> bool:
    """Whether LangGraph may have the answer of `entry` on record. A question that it asked
    after all has none; one that was released has not been asked again yet."""
    return not entry.reopened or released(entry)


def nested(parked: CheckpointTuple | None, again: frozenset[str]) -> CheckpointTuple | None:
    """A subgraph's checkpoint, without the earlier answers to the interrupts `again`."""
    if parked is None or not again:
        return parked
    asked = {
        task
        for task, channel, value in parked.pending_writes or ()
        if channel == INTERRUPT and any(interrupt.id in again for interrupt in many(value))
    }
    writes = [
        (task, channel, many(value)[:-1] if task in asked and channel == RESUME else value)
        for task, channel, value in parked.pending_writes or ()
    ]
    return _with(parked, writes)


def _continued(
    request: Request, loaded: Loaded, parked: CheckpointTuple, record: Record
) -> Prepared:
    """A continue goes on with the answer that the last run was served with, and with
    nothing from before."""
    null = next((w for w in loaded.writes if w[0] == NULL_TASK and w[1] == RESUME), None)
    recorded = {
        task: many(value)
        for task, channel, value in loaded.writes
        if channel == RESUME and task != NULL_TASK
    }
    if record == Record():
        # Nothing gated ever happened to this run, so only what is parked can tell
        # whether its answer was taken in.
        return Prepared(_with(parked, _cut(loaded, {}, keep_null=not recorded)))
    unfinished = {entry.pause: entry for entry in record.unfinished}
    cuts = {}
    again = set()
    keep_null = False
    for wait in waiting(loaded.position, loaded.writes, record, ordinal=request.ordinal):
        entry = unfinished.get(wait.pause)
        if entry is None:
            before = record.consumption(wait.pause)
            if before is not None and released(before):
                # It is to be answered anew, so LangGraph must ask again.
                cuts[wait.task] = before.taken
                if before.applied:
                    again.add(wait.interrupt)
            continue
        beyond = recorded.get(wait.task, ())[entry.taken :]
        if beyond and not _is(request.run, entry, beyond[0]):
            cuts[wait.task] = entry.taken
            beyond = ()
        if null is not None and not beyond and not entry.applied:
            keep_null = keep_null or _is(request.run, entry, null[2])
    writes = _cut(loaded, cuts, keep_null=keep_null)
    return Prepared(_with(parked, writes), again=frozenset(again))


def _is(run: str, entry: Consumption, value: Any) -> bool:
    """Whether `value` may be what `entry` was answered with."""
    found = digest(value, run, entry.pause)
    return found == entry.digest or found is None or entry.digest is None


def _forked(loaded: Loaded) -> list[Write]:
    """Nothing of what the interrupted tasks went on to after their last question."""
    asked = {task for task, channel, _ in loaded.writes if channel == INTERRUPT}
    over = {
        task
        for task, channel, _ in loaded.writes
        if task in asked and (channel not in CONTROL or channel == ERROR)
    }
    out: list[Write] = []
    for task, channel, value in loaded.writes:
        if task == NULL_TASK and channel == RESUME:
            continue
        if task in over and channel == RESUME:
            value = many(value)[:-1]
        if task not in over or channel in (INTERRUPT, RESUME):
            out.append((task, channel, value))
    return [w for w in out if not (w[1] == RESUME and not many(w[2]))]


def _cut(loaded: Loaded, cuts: dict[str, int], *, keep_null: bool) -> list[Write]:
    """The pending writes with each task's answers cut down to so many."""
    out: list[Write] = []
    for task, channel, value in loaded.writes:
        if channel == RESUME:
            if task == NULL_TASK:
                if not keep_null:
                    continue
            elif task in cuts:
                value = many(value)[: cuts[task]]
                if not value:
                    continue
        out.append((task, channel, value))
    return out


def _with(parked: CheckpointTuple, writes: list[Write]) -> CheckpointTuple:
    return parked._replace(pending_writes=writes)
