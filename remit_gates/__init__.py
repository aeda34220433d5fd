"""One pause, one answer, one continuation: consume-once gates for agent frameworks.

Wrap the checkpointer that you have, in one line, with the adapter of your framework;
`Gate` and `AsyncGate` are the same protocol for a framework of your own. Importing this
package loads no framework and no driver.
"""

from __future__ import annotations

from remit_gates._claim import ActiveClaim
from remit_gates._gate import AsyncGate, Gate, current_claim, history, release
from remit_gates._history import Attempt, Release
from remit_gates._model import (
    Claim,
    Consumption,
    Continuation,
    Holder,
    Intent,
    Outcome,
    Phase,
    Reason,
    Record,
    RunKey,
)
from remit_gates._observe import Event, observed, set_hooks
from remit_gates._policy import Policy
from remit_gates.errors import (
    Abandoned,
    AlreadyConsumed,
    ClaimLost,
    GateNotEngaged,
    InProgress,
    InvalidState,
    MissingExtra,
    NotParked,
    OutcomeUnknown,
    RemitError,
    ResumeRefused,
    SchemaMismatch,
    SetupRequired,
    StaleTicket,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
    Superseded,
    UnsupportedVersion,
    UsageError,
)
from remit_gates.stores import open_store


__all__ = [
    "Abandoned",
    "ActiveClaim",
    "AlreadyConsumed",
    "AsyncGate",
    "Attempt",
    "Claim",
    "ClaimLost",
    "Consumption",
    "Continuation",
    "Event",
    "Gate",
    "GateNotEngaged",
    "Holder",
    "InProgress",
    "Intent",
    "InvalidState",
    "MissingExtra",
    "NotParked",
    "Outcome",
    "OutcomeUnknown",
    "Phase",
    "Policy",
    "Reason",
    "Record",
    "Release",
    "RemitError",
    "ResumeRefused",
    "RunKey",
    "SchemaMismatch",
    "SetupRequired",
    "StaleTicket",
    "StoreError",
    "StoreMisconfigured",
    "StoreUnavailable",
    "Superseded",
    "UnsupportedVersion",
    "UsageError",
    "current_claim",
    "history",
    "observed",
    "open_store",
    "release",
    "set_hooks",
]
