"""A ticket binds a delivery to one question of one run: to that one or to none.

All of it is pure. What a ticket names is compared with what was loaded and with the
record, and where the two do not show it waiting, the delivery is void.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from remit_gates._digest import digest
from remit_gates._model import Answer, Consumption, Delivery, Holder, Intent, Reason, Record
from remit_gates._passage import Denied
from remit_gates._ticket import Named
from remit_gates.errors import UsageError
from remit_gates.langgraph._pauses import Loaded, Request, Waiting, judge, waiting, written


_BREAKPOINT: Final = "breakpoint"


def breakpoint_at(position: str) -> str:
    """The pause of a run that stands at a static breakpoint, of which LangGraph keeps no
    other trace than where the run stands."""
    return f"{position}:{_BREAKPOINT}"


def interrupt_of(pause: str) -> str | None:
    """The interrupt id in the name of a pause; None at a breakpoint."""
    interrupt = pause.split(":")[1]
    return None if interrupt == _BREAKPOINT else interrupt


def shown(value: Any, run: str, pause: str) -> bytes:
    """What a ticket keeps of the question that it was made for; empty if it has no digest."""
    return bytes.fromhex(digest(value, run, pause) or "")[:8]


@dataclass(frozen=True, slots=True)
class Bound:
    """A call that brought a ticket.

    Attributes:
        request: The call.
        named: What the ticket says.
    """

    request: Request
    named: Named

    @property
    def interrupt(self) -> str | None:
        """The interrupt id that the ticket names; None at a breakpoint."""
        return interrupt_of(self.named.pause)

    @property
    def asserts(self) -> bool:
        """Whether it brings what its pause takes: an answer, or at a breakpoint None."""
        return self.request.answers or self.interrupt is None

    @property
    def value(self) -> Any:
        """The answer; None for a call that brings none."""
        named = self.request.named
        return self.request.bare if named is None else named[self.interrupt or ""]

    def checked(self) -> Bound:
        """This, if call and ticket go together.

        Raises:
            UsageError: They do not.
        """
        request, wrong = self.request, ""
        if request.intent is Intent.START:
            wrong = "a ticket goes with an answer or with None, and not with new input"
        elif request.fork:
            wrong = "a ticket names what waits now, and remit_fork what no longer does"
        elif request.answers and self.interrupt is None:
            wrong = "the ticket is of a breakpoint, which takes no answer: go on with None"
        elif request.named is not None and [*request.named] != [self.interrupt]:
            wrong = "the answer names other interrupts than the ticket does"
        if wrong:
            raise UsageError(f"Thread {request.run!r}: {wrong}. Nothing was served.")
        return self

    def judge(self, loaded: Loaded, record: Record, holder: Holder) -> Delivery:
        """What the call comes to, given what was loaded."""
        request, pause = self.request, self.named.pause
        waits: tuple[Waiting, ...] = ()
        if not loaded.superseded:
            waits = waiting(loaded.position, loaded.writes, record, ordinal=request.ordinal)
        here = next((wait for wait in waits if self._is(wait, record)), None)
        answer = Answer(
            pause,
            digest(self.value, request.run, pause) if self.asserts else None,
            here.taken if here is not None else 0,
            self.named.generation,
            written(request, self.value),
        )
        moved = loaded.moved(record)
        entry = next((entry for entry in record.unfinished if self.took(entry)), None)
        if moved or loaded.superseded:
            # What it left unfinished is not what the run would go on with.
            entry = None
        if not request.answers:
            if self._stands(loaded, waits, record):
                goes_on = judge(request, loaded, record, holder)
                return replace(goes_on, bound=True, answers=(answer,))
            if not loaded.superseded and self.interrupt and (here or entry):
                return replace(judge(request, loaded, record, holder), bound=True)
        delivery = Delivery(
            intent=request.intent,
            holder=holder,
            answers=(answer,),
            bound=True,
            id=request.delivery,
            actor=request.actor,
            position=loaded.position,
        )
        if here is not None and request.answers:
            others = (wait.pause for wait in waits if wait is not here)
            disturbs = tuple(other for other in others if record.closed(other) is not None)
            return replace(delivery, disturbs=disturbs)
        # A run that went on with this very answer, and did not end, may be gone on with.
        same = entry is not None and (
            (answer.digest is not None and answer.digest == entry.digest)
            or (request.delivery is not None and request.delivery == entry.delivery)
        )
        if same and request.answers and loaded.parked is not None:
            return delivery
        known = record.closed_to(answer) is not None
        reason = Reason.NOT_PARKED if known else Reason.STALE_TICKET
        return replace(delivery, moved=moved, reason=reason)

    def _is(self, wait: Waiting, record: Record) -> bool:
        """Whether `wait` is the question that the ticket was made for."""
        named = self.named
        if wait.pause != named.pause or record.generation(wait.pause) != named.generation:
            return False
        if self.request.ordinal or record.consumption(wait.pause) is not None or not named.shown:
            return True
        # Where several questions share a name, only the record counts them. One that knows
        # nothing may have been lost since, and then the question itself must be the same.
        return shown(wait.value, self.request.run, wait.pause) == named.shown

    def took(self, entry: Consumption) -> bool:
        """Whether `entry` is of the question that the ticket names."""
        return (entry.pause, entry.generation) == (self.named.pause, self.named.generation)

    def _stands(self, loaded: Loaded, waits: tuple[Waiting, ...], record: Record) -> bool:
        """Whether the run stands at the breakpoint that the ticket names. Whoever passed it
        without the ticket, and failed, has left only a key in the record."""
        if loaded.superseded or waits or self.named.pause != breakpoint_at(loaded.position):
            return False
        known = record.consumption(self.named.pause) is not None
        return known or not record.left or loaded.moved(record)


def compared(request: Request, bound: Bound | None, denied: Denied) -> Denied:
    """`denied`, which also says whether the answer is the one that was served, where the
    verdict was reached without asking that."""
    verdict, record = denied.verdict, denied.record
    entry = verdict.consumption
    asks = verdict.reason in (Reason.IN_PROGRESS, Reason.CONSUMED, Reason.FAILED)
    if not asks or verdict.same is not None or entry is None or record is None:
        return denied
    served = [other for other in record.consumptions if other.token == entry.token]
    same = _same(request, bound, served)
    return denied if same is None else replace(denied, verdict=replace(verdict, same=same))


def _same(request: Request, bound: Bound | None, served: list[Consumption]) -> bool | None:
    pairs: list[tuple[Any, list[Consumption]]] = []
    if bound is not None:
        mine = [entry for entry in served if bound.took(entry)]
        pairs = [(bound.value, mine)] if bound.asserts else []
    elif request.named is not None:
        pairs = [
            (value, [entry for entry in served if interrupt_of(entry.pause) == interrupt])
            for interrupt, value in request.named.items()
        ]
    elif request.answers:
        pairs = [(request.bare, served)]
    if not pairs or not all(entries for _, entries in pairs):
        return None
    found = [
        (digest(value, request.run, entry.pause), entry.digest)
        for value, entries in pairs
        for entry in entries
    ]
    if any(None in pair for pair in found):
        return None
    return all(mine == theirs for mine, theirs in found)
