"""Every error of this package leaves an application as a problem, and none as a stack.

One handler, for the base of all errors, is added to the application's own; whatever else
is raised there goes its way as before.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketState

from remit_gates.errors import RemitError, UsageError
from remit_gates.http._keys import marked
from remit_gates.http._problems import Problem, problem, replayed


if TYPE_CHECKING:
    from starlette.applications import Starlette


LOGGER: Final = logging.getLogger("remit_gates.http")

REPLAYED: Final = "Idempotent-Replayed"
"""The header of an answer that repeats an earlier one."""


def add_handlers(app: Starlette) -> None:
    """Have `app`, of Starlette or FastAPI, answer every error of this package.

    A refusal becomes `application/problem+json`, with its status and `Retry-After`. An
    answer that comes again under the same delivery id becomes 200, with the recorded
    outcome and `Idempotent-Replayed: true`; another answer under that id, 422. An
    application that is mounted in another needs handlers of its own.

    Raises:
        UsageError: The application serves already, so a handler would never be asked.
    """
    if app.middleware_stack is not None:
        raise UsageError(
            "add_handlers() came after the application's first request, so its handlers would"
            " never be asked. Call it where the application is made. Nothing was added."
        )
    app.add_exception_handler(RemitError, _handle)


def response(error: RemitError, delivery: str | None = None) -> Response:
    """The response that `add_handlers` gives to `error`, for who catches it himself.

    Args:
        error: Any error of this package.
        delivery: The delivery id of the request, if it had one.
    """
    again = replayed(error, delivery)
    if again is not None:
        return _json(200, again, {REPLAYED: "true"}, "application/json")
    told = problem(error, delivery)
    return _json(told.status, told.body, told.headers, "application/problem+json")


def _json(status: int, body: Any, headers: dict[str, str], media_type: str) -> Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(errors="replace"), status, headers, media_type)


async def _handle(connection: Request | WebSocket, error: Exception) -> Any:
    """The response for a request; a socket is answered here, and gets none."""
    if not isinstance(error, RemitError):
        raise error
    told = problem(error)
    if told.status >= 500:
        # The body says nothing of it, and nothing else would: handled is not logged.
        LOGGER.error("%s: %s", told.type, error, exc_info=error)
    answer = response(error, marked(connection))
    if isinstance(connection, Request):
        return answer
    if WebSocketState.DISCONNECTED in (connection.application_state, connection.client_state):
        return None
    denies = "websocket.http.response" in connection.scope.get("extensions", {})
    if connection.application_state is WebSocketState.CONNECTING and denies:
        await connection.send_denial_response(answer)
    else:
        await connection.close(_close_code(told), told.title)
    return None


def _close_code(told: Problem) -> int:
    """Why a socket is closed, as RFC 6455 and its registry number it."""
    if told.retry_after is not None:
        return 1013  # try again later
    return 1011 if told.status >= 500 else 1008  # internal error; policy
