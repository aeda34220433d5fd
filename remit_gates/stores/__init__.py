"""Where records live. A store is dumb: it compares a version and swaps, atomically.

Every decision is made elsewhere, so a store has nothing to get wrong but atomicity,
durability and its clock. `remit_gates.testing` checks all three.
"""

from __future__ import annotations

from remit_gates.stores._open import as_async_store, as_store, open_async_store, open_store
from remit_gates.stores._protocol import AsyncStore, Entry, Store


__all__ = [
    "AsyncStore",
    "Entry",
    "Store",
    "as_async_store",
    "as_store",
    "open_async_store",
    "open_store",
]
