"""Gates behind HTTP: `add_handlers(app)` for Starlette and FastAPI.

Whoever delivers an answer over HTTP learns what became of it, by its status and by a body
that a program and a person can read, and learns nothing else.
"""

from __future__ import annotations

from remit_gates.errors import MissingExtra


try:
    import starlette as _  # noqa: F401
except ImportError:
    raise MissingExtra(
        "Starlette is not installed. Install it with: pip install 'remit-gates[http]'"
    ) from None

from remit_gates.http._handlers import add_handlers, response
from remit_gates.http._keys import idempotency_key, optional_idempotency_key
from remit_gates.http._problems import InvalidRequest, Problem, problem


__all__ = [
    "InvalidRequest",
    "Problem",
    "add_handlers",
    "idempotency_key",
    "optional_idempotency_key",
    "problem",
    "response",
]
