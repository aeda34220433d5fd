"""What is parked in a history of pydantic-ai messages, judged from the messages alone; purely.

The pause is the response and not the single call: all of its unanswered calls are answered
together. Its name is a digest of those calls, in the run that made them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from remit_gates._model import Answer, Delivery, Holder, Intent, Reason, Record


@dataclass(frozen=True, slots=True)
class Parked:
    """The unanswered calls of the last response of a history.

    Attributes:
        run: The name of the run that asked; None where the history does not tell.
        pause: The name of the question.
        calls: Ids of the calls.
    """

    run: str | None
    pause: str
    calls: frozenset[str]


def parked(messages: Sequence[Any]) -> Parked | None:
    """What waits at the end of `messages`, if something does."""
    answered: set[str] = set()
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.kind == "request":
            answered |= {part.tool_call_id for part in message.parts if answers(part)}
            continue
        calls = sorted(
            (call.tool_call_id, call.tool_name, _arguments(call))
            for call in message.parts
            if call.part_kind == "tool-call" and call.tool_call_id not in answered
        )
        if not calls:
            return None
        conversation = getattr(message, "conversation_id", None)
        made_by = getattr(message, "run_id", None)
        named: list[Any] = [calls]
        if made_by is None:
            # Some models number the calls of each response alike, so that only its place tells
            # it from the one before.
            named.append(place)
        return Parked(
            run=None if conversation is made_by is None else f"{conversation}/{made_by}",
            pause=hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32],
            calls=frozenset(call[0] for call in calls),
        )
    return None


def answers(part: Any) -> bool:
    """Whether `part` of a request is the result of a call of one of our tools."""
    if part.part_kind == "retry-prompt":
        return part.tool_name is not None
    return bool(part.part_kind == "tool-return")


def _arguments(call: Any) -> str:
    """The arguments of a call, the same whether a model wrote them as text or as a map."""
    given = call.args
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return str(given)
    return json.dumps(given or {}, sort_keys=True, default=str)


def judge(
    found: Parked,
    answer: Answer,
    holder: Holder,
    delivery: str | None,
    actor: str | None,
    record: Record,
) -> Delivery:
    """What a run comes to that answers `found` with `answer`."""
    entry = record.consumption(found.pause)
    done = entry is not None and entry.receipt is not None and not entry.reopened
    return Delivery(
        intent=Intent.ANSWER,
        holder=holder,
        answers=(answer,),
        bound=True,
        id=delivery,
        actor=actor,
        # Whatever the policy: its tools are done, and the receipt is there to go on with.
        reason=Reason.NOT_PARKED if done else None,
    )
