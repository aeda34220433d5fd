"""Many deliveries to a few runs on a real store: answers early, late and doubled, recoveries,
operators, runs that fail, are withdrawn or die, and acknowledgements that are lost."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from remit_gates._decide import release
from remit_gates._drive import drive
from remit_gates._model import Answer, Delivery, Holder, Intent, Outcome, Reason, Record, RunKey
from remit_gates._passage import Passage, enter, fence, leave
from remit_gates._policy import Policy
from remit_gates.errors import OutcomeUnknown
from remit_gates.stores import Store
from tests.proofs.traces import Event, Recorder


QUESTIONS: Final = 60
"""How many questions a run asks until it is over."""


@dataclass
class Framework:
    """The runs: where each waits, and under which token it came past each question."""

    runs: Sequence[RunKey]
    place: dict[RunKey, int] = field(default_factory=dict)
    passed: dict[RunKey, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place = dict.fromkeys(self.runs, 0)
        self.passed = {run: [] for run in self.runs}

    @property
    def far(self) -> bool:
        """Whether a run came past half of its questions."""
        return max(self.place.values()) > QUESTIONS // 2


class Worker(Recorder):
    """One thread that delivers, over and over."""

    def __init__(self, framework: Framework, policy: Policy, *given: Any) -> None:
        super().__init__(*given)
        self.framework = framework
        self.policy = policy
        self.choose = random.Random(given[-1])
        self.run = framework.runs[0]
        self.seed = given[-1]
        self.sent = 0

    def load(self) -> int:
        return self.framework.place[self.run]

    def deliver(self) -> None:
        """One delivery, of any kind, to any run, and what becomes of it."""
        self.run = self.choose.choice(self.framework.runs)
        self.sent += 1
        holder = Holder("load", self.seed, "0", f"{self.seed}.{self.sent}")
        recovers = self.choose.random() < 0.3
        late = self.choose.randrange(2)

        def judge(place: int, record: Record) -> Delivery:
            asked = max(place - late, 0)
            fits = place < QUESTIONS and (recovers or asked == place)
            return Delivery(
                Intent.CONTINUE if recovers else Intent.ANSWER,
                holder,
                () if recovers else (Answer(f"q{asked}", holder.nonce),),
                bound=not recovers,
                position=f"c{place}",
                reason=None if fits else Reason.NOT_PARKED,
            )

        try:
            passage = drive(enter(self.run, holder, self.policy, judge), self)
        except OutcomeUnknown:
            # It may hold the run, and will not come back.
            self._dead.add(holder.nonce)
            return
        if isinstance(passage, Passage):
            self.serve(passage)
        elif self.choose.random() < 0.2:
            self.release()

    def serve(self, passage: Passage) -> None:
        place: int = passage.loaded
        fate = self.choose.random()
        if fate < 0.1:
            self._dead.add(passage.claim.holder.nonce)
            return
        if fate < 0.2:
            drive(leave(passage, None), self)
            return
        if fate < 0.3:
            drive(leave(passage, Outcome("failed", detail="ValueError"), True), self)
            return
        self.renew(self.run, passage.claim.token, self.policy.lease)
        drive(fence(passage), self)
        self.framework.passed[self.run].append(place)
        self.framework.place[self.run] = place + 1
        if self.choose.random() < 0.1:
            self._dead.add(passage.claim.holder.nonce)
            return
        over = place + 1 == QUESTIONS
        waiting = () if over else (f"q{place + 1}",)
        drive(
            leave(passage, Outcome("finished" if over else "parked", waiting=waiting), True), self
        )

    def release(self) -> None:
        """What an operator does, as `_gate.release` does it."""
        snap = self.read(self.run)
        claim = snap.record.claim
        left = 0.0 if claim is not None and self.dead(claim.holder) else snap.lease_left
        after = release(snap.record, left, 0.0)
        if isinstance(after, Record) and after != snap.record:
            try:
                self.swap(self.run, snap.version, after, None, True)
            except OutcomeUnknown:
                return


def loaded(
    store: Store, policy: Policy, seed: int, *, threads: int = 6, each: int = 120
) -> tuple[list[Event], Framework]:
    """All that a store did for `threads` times `each` deliveries, and where the runs came.

    How far they come is the scheduler's luck, so there are more deliveries until one is far.
    """
    events: list[Event] = []
    dead: set[str] = set()
    framework = Framework([RunKey("load", "", f"run{number}") for number in range(2)])
    together = threading.Barrier(threads)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        worker = Worker(framework, policy, store, events, dead, seed * 100 + number)
        together.wait()
        try:
            while worker.sent < each or (worker.sent < 20 * each and not framework.far):
                worker.deliver()
        except BaseException as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    sys.setswitchinterval(interval)
    if failed:
        raise failed[0]
    return events, framework
