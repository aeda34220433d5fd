"""The words of the protocol as values. Every change to one makes a new one."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Final, Literal


KEEP: Final = 64
"""How many consumptions a record keeps; the oldest go first."""

KEEP_EARLIER: Final = 32
"""How many attempts that a later one replaced a record keeps; the oldest go first."""


class Intent(str, enum.Enum):
    """What a delivery wants of its run."""

    ANSWER = "answer"
    CONTINUE = "continue"
    START = "start"
    FORK = "fork"


class Reason(str, enum.Enum):
    """Why a delivery was refused. Closed: a caller may match on every member."""

    IN_PROGRESS = "in_progress"
    CONSUMED = "consumed"
    FAILED = "failed"
    ABANDONED = "abandoned"
    STALE_TICKET = "stale_ticket"
    NOT_PARKED = "not_parked"
    SUPERSEDED = "superseded"


class Phase(str, enum.Enum):
    """How far the run went that a consumption started."""

    RUNNING = "running"
    SETTLED = "settled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """The name of one run in a store.

    Attributes:
        framework: Which adapter the run belongs to, for instance `langgraph`.
        namespace: The user's own partition of a shared store; empty by default.
        run: The framework's name of the run, for instance a thread id.
    """

    framework: str
    namespace: str
    run: str

    def __str__(self) -> str:
        return f"{self.framework}:{self.namespace}/{self.run}"


@dataclass(frozen=True, slots=True)
class Holder:
    """One attempt in one process: the only thing that tells two racers apart.

    Attributes:
        host: Names the machine boot and pid namespace in which `pid` means something.
        pid: Process id of the attempt.
        started: Start time of that process in the system's own ticks; empty if unknown.
        nonce: Random, minted for each attempt.
    """

    host: str
    pid: int
    started: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a served run.

    Attributes:
        state: `finished`, `parked`, `failed`, or `released` by an operator.
        position: Where the run then stood, in the framework's words (a checkpoint id).
        waiting: The pauses that waited when the run ended.
        detail: Type of the error of a failed run, or the reason of a release.
        actor: Who released it.
        error: Type of the error of the run that was released, when it had failed.
        ended: When that run had failed; None for one that was abandoned.
    """

    state: Literal["finished", "parked", "failed", "released"]
    position: str | None = None
    waiting: tuple[str, ...] = ()
    detail: str | None = None
    actor: str | None = None
    error: str | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Continuation:
    """A delivery that went on with an answer that an earlier attempt had taken.

    Attributes:
        since: When, in seconds since the epoch by the store's clock.
        delivery: Its delivery id, when it had one.
        actor: Who delivered it, when known.
    """

    since: float
    delivery: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one delivery to continue its run.

    Attributes:
        holder: Who holds it.
        token: Fencing token; strictly increasing for a run.
        attempt: 1 for the first attempt at these pauses, then one more for each.
        intent: What the delivery came for.
        pauses: The pauses that the claim answers, or took over unfinished.
        lease: Seconds it lives without a heartbeat.
        since: When it was granted, in seconds since the epoch by the store's clock.
        key: What `idempotency_key` is made of; stable across attempts.
        delivery: The delivery id, when the caller gave one.
        actor: Who delivers, when the caller said so.
        position: Where the run stood when it was granted, in the framework's words.
    """

    holder: Holder
    token: int
    attempt: int
    intent: Intent
    pauses: tuple[str, ...]
    lease: float
    since: float
    key: str
    delivery: str | None = None
    actor: str | None = None
    position: str = ""


@dataclass(frozen=True, slots=True)
class Consumption:
    """The fact that a pause was answered.

    Attributes:
        pause: The pause.
        generation: How many questions were asked before in this same place, where the
            framework gives all of them one name; 0 otherwise.
        token: Token of the claim that last worked on it.
        attempt: Number of attempts so far.
        phase: How far the run went.
        digest: Digest of the answer; None where the answer has no canonical form.
        delivery: The delivery id, when there was one.
        actor: Who answered, when known.
        holder: Who served it.
        since: When it was answered, seconds since the epoch by the store's clock.
        until: When its run ended, likewise.
        outcome: What became of the run.
        applied: Whether the framework is known to have taken the answer in.
        taken: How many answers its place had taken in before; see `Answer`.
        reopened: Why the pause may be answered once more: `again` when the same question
            waits again (it was released, or its answer left no trace), `anew` when the
            framework gave the next question the same name; None while it is closed.
        continued: The delivery behind this attempt, where it goes on with the answer of an
            earlier one; None for the attempt that brought the answer.
        answer: The answer as JSON text, where the policy records answers.
        receipt: What its effects returned, in the adapter's own form, for a run that goes on
            without them; None where there is nothing to go on with.
    """

    pause: str
    generation: int
    token: int
    attempt: int
    phase: Phase
    digest: str | None
    delivery: str | None
    actor: str | None
    holder: Holder
    since: float
    until: float | None = None
    outcome: Outcome | None = None
    applied: bool = False
    taken: int = 0
    reopened: Literal["again", "anew"] | None = None
    continued: Continuation | None = None
    answer: str | None = field(default=None, repr=False)
    receipt: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Record:
    """All that a store knows of one run.

    Attributes:
        token: The last token that was granted; 0 for none.
        served: The last token whose run was not withdrawn; 0 for none.
        left: The key of that token's claim, while its work is unfinished; else empty.
        owed: The delivery id of that claim, when it had one.
        began: Where the run stood when that claim was granted, likewise.
        spent: The last `KEEP` delivery ids that did their work and stand in no consumption.
        claim: The active claim; its lease is kept by the store.
        consumptions: The last `KEEP` consumptions, oldest first, one for each pause
            and generation.
        earlier: The last `KEEP_EARLIER` attempts that a later one replaced, oldest first.
            No decision looks at them; they are for the audit, and tell a late holder what
            became of its claim. One without a pause is a release of a claim that had
            answered none.
    """

    token: int = 0
    served: int = 0
    left: str = ""
    owed: str | None = None
    began: str = ""
    spent: tuple[str, ...] = ()
    claim: Claim | None = None
    consumptions: tuple[Consumption, ...] = ()
    earlier: tuple[Consumption, ...] = ()

    def consumption(self, pause: str) -> Consumption | None:
        """The latest consumption of `pause`, whether or not it was re-opened since."""
        for entry in reversed(self.consumptions):
            if entry.pause == pause:
                return entry
        return None

    def closed(self, pause: str) -> Consumption | None:
        """The consumption that keeps `pause` closed; None while it may be answered."""
        entry = self.consumption(pause)
        return None if entry is None or entry.reopened else entry

    def closed_to(self, answer: Answer) -> Consumption | None:
        """The consumption that keeps the pause of `answer` closed to it. A question that was
        asked in the same place since does not open the one that a ticket names."""
        if answer.generation is None:
            return self.closed(answer.pause)
        for entry in reversed(self.consumptions):
            if (entry.pause, entry.generation) == (answer.pause, answer.generation):
                return None if entry.reopened == "again" else entry
        return None

    def generation(self, pause: str) -> int:
        """How many questions were asked in the place of `pause` before the one that was
        asked last."""
        entry = self.consumption(pause)
        if entry is None:
            return 0
        return entry.generation + (entry.reopened == "anew")

    @property
    def last(self) -> int:
        """The token of the active claim, or else of the last one that was served."""
        return self.served if self.claim is None else self.claim.token

    @property
    def origin(self) -> str:
        """Where the run stood when that claim was granted; empty once its work is finished."""
        return self.began if self.claim is None else self.claim.position

    @property
    def unfinished(self) -> tuple[Consumption, ...]:
        """What the last served claim answered and did not finish."""
        return tuple(
            entry
            for entry in self.consumptions
            if entry.token == self.last and entry.phase is not Phase.SETTLED and not entry.reopened
        )

    def by_token(self, token: int) -> Consumption | None:
        """The first consumption that the claim with `token` worked on."""
        for entry in self.consumptions:
            if entry.token == token:
                return entry
        return None

    def by_delivery(self, delivery: str) -> Consumption | None:
        """The latest consumption by the delivery id `delivery`."""
        for entry in reversed(self.consumptions):
            if entry.delivery == delivery:
                return entry
        return None

    def with_spent(self, *ids: str | None) -> Record:
        """This record, which knows `ids` as having done their work."""
        new = [used for used in ids if used is not None and used not in self.spent]
        return replace(self, spent=(*self.spent, *new)[-KEEP:]) if new else self

    def with_earlier(self, attempt: Consumption) -> Record:
        """This record, which also remembers `attempt`."""
        return replace(self, earlier=(*self.earlier, attempt)[-KEEP_EARLIER:])

    def with_consumption(self, entry: Consumption) -> Record:
        """This record with `entry` in place of its own earlier attempt, or added last."""
        name = (entry.pause, entry.generation)
        kept = tuple(old for old in self.consumptions if (old.pause, old.generation) != name)
        record = self
        if len(kept) < len(self.consumptions):
            for old in self.consumptions:
                if (old.pause, old.generation) == name:
                    # An answer that is gone on with stands in the new entry, and a receipt
                    # is of use to the next attempt only.
                    doubled = old.answer is not None and entry.continued is not None
                    if doubled or old.receipt is not None:
                        kept_answer = None if doubled else old.answer
                        old = replace(old, answer=kept_answer, receipt=None)
                    record = record.with_earlier(old)
        # Never what the same claim works on, however many pauses it answers at once.
        mine = sum(old.token == entry.token for old in kept) + 1
        over = len(kept) + 1 - max(KEEP, mine)
        if over <= 0:
            return replace(record, consumptions=(*kept, entry))
        forgotten = record.with_spent(*(old.delivery for old in kept[:over]))
        return replace(forgotten, consumptions=(*kept[over:], entry))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a store answers to `read`, all of one moment.

    Attributes:
        version: What the next `swap` must expect; None when there is no record.
        record: The record, or an empty one.
        lease_left: Seconds that the active claim still lives, by the store's clock;
            zero or less when it has expired, None when no claim is active.
        now: The store's clock, seconds since the epoch.
    """

    version: int | None
    record: Record
    lease_left: float | None
    now: float


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered pause of a delivery.

    Attributes:
        pause: The pause.
        digest: Digest of the answer; None where it has no canonical form.
        taken: How many answers the place of the pause had taken in before, where the
            framework keeps them in a list.
        generation: Which question of that place it is for, as `Consumption.generation`
            counts them; None for the one that waits, where no ticket tells.
        text: The answer as JSON text; None unless the policy records answers.
    """

    pause: str
    digest: str | None = None
    taken: int = 0
    generation: int | None = None
    text: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call that tries to continue a run, as its adapter judged it.

    Attributes:
        intent: What it wants.
        holder: The attempt behind it.
        answers: The pauses that it answers. A `CONTINUE` has one where a ticket binds it to
            a place that waits without asking anything.
        bound: Whether each answer names its pause. A `CONTINUE` is never bound unless
            a ticket binds it.
        id: The delivery id, by which a redelivery is recognised.
        actor: Who delivers.
        position: Where the run stood when it was loaded.
        disturbs: Pauses that it does not answer, but whose work its run would do again or
            go on with.
        moved: Whether the run has gone on to other work since, without a claim: new input
            is not gated by default. What the last claim left is then not to be gone on with.
        reason: Why the adapter holds the delivery for void, unless the record knows
            better; None when it fits what was loaded.
    """

    intent: Intent
    holder: Holder
    answers: tuple[Answer, ...] = ()
    bound: bool = False
    id: str | None = None
    actor: str | None = None
    position: str = ""
    disturbs: tuple[str, ...] = ()
    moved: bool = False
    reason: Reason | None = None
