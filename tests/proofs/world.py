"""Everything that a proof lets happen: one store, one run of a framework with two pauses, and
the processes that deliver to it. A world is a value, and equal worlds have equal futures.

The run waits at P, its node runs, it waits at Q, that node runs, and it has finished. The
store and the run are apart, as they are in life: a crash may come between any two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from remit_gates._model import Answer, Delivery, Holder, Intent, Outcome, Reason, Record
from remit_gates._passage import Judge
from remit_gates._policy import Policy
from tests.proofs.flows import Moving


P, Q, END = 0, 1, 2
PLACES: Final = ("P", "Q", "the end")

TICKS: Final = 1
"""Ticks that a lease lives: between two of them every deadline is in the future, and after
the next one in the past. More would only put steps in between."""


@dataclass(frozen=True)
class Spec:
    """One delivery.

    Attributes:
        name: What a trace calls it.
        intent: What it wants.
        meant: The question that its sender saw.
        bound: Whether it names that question.
        id: Its delivery id.
    """

    name: str
    intent: Intent = Intent.ANSWER
    meant: int = P
    bound: bool = True
    id: str | None = None

    @property
    def text(self) -> str:
        """Its answer. Copies of one message have the same."""
        return self.id or self.name


@dataclass(frozen=True)
class Scenario:
    """What a proof explores.

    Attributes:
        deliveries: The deliveries; each may come at any time.
        policy: The policy of all of them.
        pauses: What the framework calls its two pauses.
        crashes: How many processes may crash, each at any step, and be known to be dead.
            One that is not known to be dead is one that never moves again, which every
            process may be.
        losses: How many acknowledgements of swaps may be lost. Such a swap lands at once,
            later or never.
        interrupts: How many swaps may be interrupted from the keyboard, landed or not.
        outages: Whether a read may fail.
        ticks: Whether time passes, as often as it likes.
        beats: How many of the deliveries have a heartbeat once they are served.
        falters: Whether a run may be withdrawn, and a node raise.
        releases: How often an operator may release the run.
        durable: Whether the framework stores an answer before the node runs, or only what
            came of it.
        stalls: Whether a process may stall between the fence and the write behind it.
        bare_too: Whether a bare answer, too, must be applied only where it was meant.
        drift: How many milliseconds the store's clock may have moved at each read.
        signed: Whether the framework keeps the token under which its run came this far.
    """

    deliveries: tuple[Spec, ...]
    policy: Policy = field(default_factory=lambda: Policy(lease=TICKS))
    pauses: tuple[str, str] = ("p", "q")
    crashes: int = 0
    losses: int = 0
    interrupts: int = 0
    outages: bool = False
    ticks: bool = True
    beats: int = 0
    falters: bool = False
    releases: int = 0
    durable: bool = True
    stalls: bool = False
    bare_too: bool = False
    drift: int = 0
    signed: bool = False

    def bare(self, who: int) -> bool:
        spec = self.deliveries[who]
        return spec.intent is Intent.ANSWER and not spec.bound

    def pause(self, place: int) -> str | None:
        return None if place == END else self.pauses[place]

    def loaded(self, world: World) -> tuple[Any, ...]:
        """What a load gives: where the run waits, and whose answer it has stored there."""
        return world.place, world.answer

    def parked(self, place: int) -> Outcome:
        """How a run ends that has come as far as `place`."""
        if place == END:
            return Outcome("finished", position=PLACES[place])
        return Outcome("parked", position=PLACES[place], waiting=(str(self.pause(place)),))

    def judge(self, who: int) -> Judge:
        """What an adapter makes of a delivery."""
        spec = self.deliveries[who]

        def judge(loaded: tuple[int, int | None], record: Record) -> Delivery:
            here = self.pause(loaded[0])
            named = self.pauses[spec.meant] if spec.bound else here
            answers = spec.intent is Intent.ANSWER and named is not None
            fits = here is not None if spec.intent is not Intent.ANSWER else named == here
            return Delivery(
                spec.intent,
                holder(who),
                (Answer(str(named), spec.text),) if answers else (),
                bound=spec.bound and spec.intent is Intent.ANSWER,
                id=spec.id,
                position=PLACES[loaded[0]],
                reason=None if fits and here is not None else Reason.NOT_PARKED,
            )

        return judge


HOLDERS: Final = tuple(Holder("host", pid, "0", str(pid)) for pid in range(8))


def holder(who: int) -> Holder:
    return HOLDERS[who]


class Process(NamedTuple):
    """One delivery's process.

    Attributes:
        stage: `entering`, `held` (nothing ran yet), `node` (its answer is stored), `ran`,
            `leaving`, `over`, `crashed`; and `storing` and `saving` for a process that
            stalls between the fence and its write.
        flow: Where its flow stands.
        beat: Where its heartbeat's flow stands.
        held: The number of its passage, once it has one.
        moving: What moves in it.
        seen: Where the run stood when a bare answer first looked.
    """

    stage: str = "entering"
    flow: int | None = None
    beat: int | None = None
    held: int | None = None
    moving: Moving | None = None
    seen: int | None = None


class Run(NamedTuple):
    """A node that ran.

    Attributes:
        place: At which pause.
        answer: Whose answer it used.
        token: Under which token,
        attempt: as which attempt,
        intent: and for what intent.
    """

    place: int
    answer: int
    token: int
    attempt: int
    intent: Intent


class World(NamedTuple):
    """Attributes:
    record: The number of the record in the store; None before the first swap.
    left: Ticks left to its lease.
    crashes, losses, interrupts, releases: How many may still come.
    adrift: Swaps whose acknowledgement was lost, and that may land at the newest
        version: the number of the record, the lease, and whose it is.
    place: Where the run waits.
    answer: Whose answer the framework has stored there.
    served: How many answers were served at each pause, and not withdrawn.
    wrote: The token under which the run came to where it waits, if the scenario wants it.
    runs: The nodes that ran so far.
    reopened: How often each pause was asked again, or re-opened by an operator.
    breach: What an invariant said of the last step.
    """

    record: int | None
    left: int | None
    adrift: frozenset[tuple[int, float | None, int]]
    place: int
    answer: int | None
    processes: tuple[Process, ...]
    crashes: int
    losses: int
    interrupts: int
    releases: int
    served: tuple[int, int] = (0, 0)
    wrote: int = 0
    runs: tuple[Run, ...] = ()
    reopened: tuple[int, int] = (0, 0)
    breach: str | None = None

    def broken(self, breach: str | None) -> World:
        return self if breach is None or self.breach else self._replace(breach=breach)

    def counts(self, place: int, change: int = 1) -> World:
        served = (self.served[P] + change * (place == P), self.served[Q] + change * (place == Q))
        return self._replace(served=served)

    def put(self, who: int, process: Process, **changes: Any) -> World:
        processes = (*self.processes[:who], process, *self.processes[who + 1 :])
        # The step of most steps: without the detour of `_replace`.
        after = World._make((*self[:PROCESSES], processes, *self[PROCESSES + 1 :]))
        return after._replace(**changes) if changes else after


PROCESSES: Final = World._fields.index("processes")


def first(scenario: Scenario) -> World:
    return World(
        record=None,
        left=None,
        adrift=frozenset(),
        place=P,
        answer=None,
        processes=(Process(),) * len(scenario.deliveries),
        crashes=scenario.crashes,
        losses=scenario.losses,
        interrupts=scenario.interrupts,
        releases=scenario.releases,
    )
