"""All clauses, in the order in which they run: the one that sets the store up is first."""

from __future__ import annotations

from typing import Final

from remit_gates.testing import (
    _clauses_leases,
    _clauses_rows,
    _clauses_scans,
    _clauses_swaps,
)
from remit_gates.testing._clause import Clause


CLAUSES: Final[dict[str, Clause]] = {
    clause.name: clause
    for module in (_clauses_swaps, _clauses_leases, _clauses_rows, _clauses_scans)
    for clause in vars(module).values()
    if isinstance(clause, Clause)
}
"""Every clause by name."""
