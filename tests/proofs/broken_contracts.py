"""The same contracts with a decision that has forgotten the ledger, and with one that retries
whatever the policy says. CrossHair must refute them."""

from __future__ import annotations

from dataclasses import replace

from remit_gates._decide import Verdict, decide
from remit_gates._model import Delivery, Record
from remit_gates._policy import Policy
from tests.proofs.contracts import chosen, consistent, count, keeps_to


__all__ = ["consistent", "consumed", "policies"]


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


def headstrong(
    record: Record, delivery: Delivery, lease_left: float | None, policy: Policy, now: float
) -> Verdict:
    return decide(record, delivery, lease_left, chosen(serve=True, retry=True), now)


def policies(
    phase: int, open_: int, active: bool, asks: int, same: bool, serve: bool, retry: bool
) -> bool:
    """
    pre: 1 <= phase <= 3 and 0 <= open_ <= 2 and 0 <= asks <= 1
    post: __return__
    """
    return keeps_to(headstrong, phase, open_, active, asks, same, serve, retry)
