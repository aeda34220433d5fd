"""The same contract with a decision that has forgotten the ledger. CrossHair must refute it."""

from __future__ import annotations

from dataclasses import replace

from remit_gates._decide import Verdict, decide
from remit_gates._model import Delivery, Record
from remit_gates._policy import Policy
from tests.proofs.contracts import consistent, count


__all__ = ["consistent", "consumed"]


def forgetful(
    record: Record, delivery: Delivery, lease_left: float | None, policy: Policy, now: float
) -> Verdict:
    return decide(replace(record, consumptions=()), delivery, lease_left, policy, now)


def consumed(phase: int, open_: int, active: bool, alive: bool, asks: int, same: bool) -> int:
    """
    pre: 0 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 2
    pre: consistent(phase, open_)
    post: 0 <= __return__ <= 1
    """
    return count(forgetful, phase, open_, active, alive, asks, same)
