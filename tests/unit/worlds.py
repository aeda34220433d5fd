"""The pure core in two settings: a ledger with no store, and a world with a fake one.

Neither has a real clock, so a test says what time it is and never waits for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from remit_gates._codec import decode, encode
from remit_gates._decide import Granted, Refused, Verdict, decide, release, settle
from remit_gates._digest import digest
from remit_gates._drive import drive
from remit_gates._model import (
    Answer,
    Claim,
    Consumption,
    Delivery,
    Holder,
    Intent,
    Outcome,
    Reason,
    Record,
    RunKey,
    Snapshot,
)
from remit_gates._passage import Denied, Judge, Passage, enter, leave
from remit_gates._policy import Policy
from remit_gates.errors import OutcomeUnknown, StoreUnavailable


Script = Callable[[Callable[[], Any]], Any]
"""What happens in place of a call to the world, which it gets as a function."""

RUN = RunKey("test", "", "order-17")

SERVE = Policy(on_abandoned="serve")

DONE = Outcome("finished", position="c1")


def holder(name: str) -> Holder:
    return Holder(host=f"host-{name}", pid=len(name), started="7", nonce=name)


def claim(verdict: Verdict) -> Claim:
    """The claim of a delivery that must have been granted."""
    assert isinstance(verdict, Granted), verdict
    return verdict.claim


def refusal(verdict: Verdict) -> Refused:
    """The refusal of a delivery that must have been refused."""
    assert isinstance(verdict, Refused), verdict
    return verdict


def why(verdict: Verdict) -> Reason:
    """Its reason."""
    return refusal(verdict).reason


def lost(call: Callable[[], Any]) -> Any:
    """A script: the request never reached the store, and nobody can tell."""
    raise OutcomeUnknown("no answer")


def landed(call: Callable[[], Any]) -> Any:
    """A script: the request reached the store, and its answer never came back."""
    call()
    raise OutcomeUnknown("no answer")


def down(call: Callable[[], Any]) -> Any:
    """A script: the store cannot be reached, and nothing was sent."""
    raise StoreUnavailable("down")


@dataclass
class Ledger:
    """One run through the decisions alone. Each delivery comes a second after the last."""

    policy: Policy = field(default_factory=Policy)
    record: Record = field(default_factory=Record)
    before: Record = field(default_factory=Record)
    lease_left: float | None = None
    now: float = 1_000.0

    def deliver(self, intent: Intent, *pauses: str, by: str = "a", **rest: Any) -> Verdict:
        """Decide on a delivery, and take the record over if it is granted. Each answer
        has the digest `yes`, unless `digest` says otherwise."""
        self.now += 1
        text, taken = rest.pop("digest", "yes"), rest.pop("taken", 0)
        answers = tuple(Answer(pause, text, taken) for pause in pauses)
        delivery = Delivery(intent, holder(by), answers, **rest)
        verdict = decide(self.record, delivery, self.lease_left, self.policy, self.now)
        if isinstance(verdict, Granted):
            self.before, self.record = self.record, verdict.record
            self.lease_left = self.policy.lease
        return verdict

    def answer(self, *pauses: str, **rest: Any) -> Verdict:
        return self.deliver(Intent.ANSWER, *pauses, **rest)

    def go_on(self, **rest: Any) -> Verdict:
        return self.deliver(Intent.CONTINUE, **rest)

    def start(self, **rest: Any) -> Verdict:
        return self.deliver(Intent.START, **rest)

    def ends(self, state: Any = "finished", *waiting: str, applied: bool = True) -> Record:
        """The run that is being served ends."""
        assert self.record.claim is not None
        outcome = Outcome(state, position="c1", waiting=waiting)
        after = settle(self.record, self.record.claim.token, outcome, self.now + 0.5, applied)
        assert after is not None
        self.record, self.lease_left = after, None
        return after

    def dies(self) -> None:
        """The holder dies, and its lease runs out."""
        assert self.record.claim is not None
        self.lease_left = 0.0

    def entry(self, pause: str) -> Consumption:
        """The latest consumption of a pause that must have been answered."""
        entry = self.record.consumption(pause)
        assert entry is not None
        return entry

    def releases(self, **rest: Any) -> Record | Refused:
        """Somebody releases the run."""
        after = release(self.record, self.lease_left, self.now, **rest)
        if isinstance(after, Record):
            self.record, self.lease_left = after, None
        return after


@dataclass
class Row:
    version: int
    text: str
    expires: float | None


@dataclass
class World:
    """A store, a framework with a list of waiting pauses, and one clock for both.

    Attributes:
        waiting: What `load` returns: the pauses that wait.
        position: Where the run stands.
        clock: The monotonic clock; the store's is ahead of it by `EPOCH`.
        calls: The operations performed, in order; a durable swap is called `claim`.
        scripts: For each operation, what to do instead at its next calls: each script
            gets the real call as a function, and its result is the operation's.
        later: What happens at a time, while somebody sleeps.
    """

    EPOCH: ClassVar[float] = 1_700_000_000.0

    waiting: list[str] = field(default_factory=lambda: ["p1"])
    position: str = "c0"
    clock: float = 50.0
    rows: dict[RunKey, Row] = field(default_factory=dict)
    buried: set[Holder] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    naps: list[float] = field(default_factory=list)
    scripts: dict[str, list[Script]] = field(default_factory=dict)
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    versions: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def script(self, operation: str, *steps: Script) -> None:
        self.scripts.setdefault(operation, []).extend(steps)

    def _perform(self, name: str, call: Callable[[], Any]) -> Any:
        self.calls.append(name)
        steps = self.scripts.get(name)
        return steps.pop(0)(call) if steps else call()

    def slowly(self, seconds: float) -> Script:
        """A script: the call, some time later."""

        def step(call: Callable[[], Any]) -> Any:
            self.clock += seconds
            return call()

        return step

    def read(self, run: RunKey) -> Any:
        return self._perform("read", lambda: self._read(run))

    def _read(self, run: RunKey) -> Snapshot:
        now = self.clock + self.EPOCH
        row = self.rows.get(run)
        if row is None:
            return Snapshot(None, Record(), None, now)
        left = None if row.expires is None else row.expires - self.clock
        return Snapshot(row.version, decode(row.text), left, now)

    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> Any:
        def call() -> int | None:
            row = self.rows.get(run)
            if (None if row is None else row.version) != expected:
                return None
            expires = None if lease is None else self.clock + lease
            self.rows[run] = Row(next(self.versions), encode(record), expires)
            return self.rows[run].version

        return self._perform("claim" if durable else "swap", call)

    def renew(self, run: RunKey, token: int, lease: float) -> Any:
        def call() -> bool:
            row = self.rows.get(run)
            claim = None if row is None else decode(row.text).claim
            if row is None or claim is None or row.expires is None or claim.token != token:
                return False
            if row.expires <= self.clock:
                return False
            row.expires = self.clock + lease
            return True

        return self._perform("renew", call)

    def load(self) -> Any:
        return self._perform("load", lambda: list(self.waiting))

    def dead(self, holder: Holder) -> Any:
        return self._perform("dead", lambda: holder in self.buried)

    def now(self) -> Any:
        return self.clock

    def sleep(self, seconds: float) -> Any:
        self.naps.append(seconds)
        self.clock += seconds
        due = [event for moment, event in self.later if moment <= self.clock]
        self.later = [entry for entry in self.later if entry[0] > self.clock]
        for event in due:
            event()

    @property
    def record(self) -> Record:
        return self._read(RUN).record

    def answers(self, by: str, pause: str | None = None, value: Any = "yes", **rest: Any) -> Judge:
        """An adapter's judgement of an answer: bound to `pause`, or to what waits."""

        def judge(waiting: list[str], record: Record) -> Delivery:
            named = pause or (waiting[0] if waiting else None)
            answers = () if named is None else (Answer(named, digest(value, RUN.run, named)),)
            return Delivery(
                Intent.ANSWER,
                holder(by),
                answers,
                bound=pause is not None,
                position=self.position,
                reason=None if named in waiting else Reason.NOT_PARKED,
                **rest,
            )

        return judge

    @staticmethod
    def continues(by: str) -> Judge:
        """An adapter's judgement of a delivery without an answer."""
        return lambda waiting, record: Delivery(Intent.CONTINUE, holder(by))

    def comes(
        self, by: str, judge: Judge | None = None, policy: Policy | None = None
    ) -> Passage | Denied:
        """A delivery comes: of a bare answer, unless `judge` says otherwise."""
        return drive(enter(RUN, holder(by), policy or Policy(), judge or self.answers(by)), self)

    def enters(self, by: str, judge: Judge | None = None, policy: Policy | None = None) -> Passage:
        """A delivery comes, and is served."""
        passage = self.comes(by, judge, policy)
        assert isinstance(passage, Passage), passage
        return passage

    def refuses(self, by: str, judge: Judge | None = None, policy: Policy | None = None) -> Denied:
        """A delivery comes, and is refused."""
        denied = self.comes(by, judge, policy)
        assert isinstance(denied, Denied), denied
        return denied


def left(world: World, passage: Passage, outcome: Outcome | None = DONE) -> bool:
    """Leave, and tell whether the claim was still its own."""
    return drive(leave(passage, outcome, applied=True), world)
