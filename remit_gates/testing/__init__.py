"""The contract of a store as executable clauses: a store that passes them can be trusted
with claims, whoever wrote it.

    from remit_gates.testing import check_store

    def test_my_store():
        check_store(lambda: MyStore("…")).raise_for_failures()
"""

from __future__ import annotations

from remit_gates.testing._check import check_async_store, check_store, clauses
from remit_gates.testing._harness import Harness
from remit_gates.testing._report import Report, Result, Violation


__all__ = [
    "Harness",
    "Report",
    "Result",
    "Violation",
    "check_async_store",
    "check_store",
    "clauses",
]
