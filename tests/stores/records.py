"""Records for tests that care about the store and not about the protocol."""

from __future__ import annotations

from remit_gates._model import RunKey
from remit_gates.testing._clause import claimed, settled


__all__ = ["RUN", "claimed", "settled"]

RUN = RunKey("test", "", "run")
