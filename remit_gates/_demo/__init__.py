"""What `remit-gates demo` runs: the same calls on the same graph, stock and gated, and a
count of what each of them did."""

from __future__ import annotations
