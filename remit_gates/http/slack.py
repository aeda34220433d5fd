"""A click in Slack is a delivery: known to be Slack's, named, and acknowledged in time.

Slack wants an answer within three seconds, which few runs keep. So the request is
acknowledged at once, and the run goes on after that. Whoever clicked learns what came of
it by a message, not by the response.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from remit_gates.errors import RemitError, ResumeRefused, UsageError
from remit_gates.http._keys import mark
from remit_gates.http._problems import InvalidRequest, Problem, problem


__all__ = ["Slack", "SlackRequest", "acknowledge"]

LOGGER: Final = logging.getLogger("remit_gates.http")

WINDOW: Final = 300
"""Seconds by which a request's time may differ from ours, either way, as Slack has it."""


@dataclass(frozen=True, slots=True)
class SlackRequest:
    """One request of Slack's, whose signature was right.

    Attributes:
        payload: What Slack sent, as a mapping.
        delivery: The delivery id. It names the question rather than the click, so that
            whoever clicks whatever button of one question, and however often, delivers
            one message: see `docs/services.md`.
        actor: Who clicked, as `slack:TEAM/USER`; None if nobody did.
        value: The value of the button that was clicked, where a ticket belongs; None if
            there was no button, or it has no value.
        action: The `action_id` of the button, or the `callback_id` of a modal.
        response_url: Where a message for whoever clicked can be sent; None if nowhere.
        challenge: What has to be sent back when Slack checks the URL; else None.
        retry: How many times Slack sent this before; 0 for the first time.
        retry_reason: Why Slack sends it again, in its words; None for the first time.
    """

    payload: Mapping[str, Any] = field(repr=False)
    delivery: str
    actor: str | None = None
    value: str | None = field(default=None, repr=False)
    action: str | None = None
    response_url: str | None = field(default=None, repr=False)
    challenge: str | None = None
    retry: int = 0
    retry_reason: str | None = None


class Slack:
    """Reads the requests of one Slack app.

    Args:
        signing_secret: The app's signing secret; several while one replaces another.
        clock: Gives the time in seconds since the epoch.

    Raises:
        UsageError: A secret is empty, so anybody's request would be taken for Slack's.
    """

    def __init__(
        self, signing_secret: str | Sequence[str], *, clock: Callable[[], float] = time.time
    ) -> None:
        secrets = [signing_secret] if isinstance(signing_secret, str) else list(signing_secret)
        if not secrets or not all(secrets):
            raise UsageError("Slack() needs the signing secret of the app, and got an empty one.")
        self._secrets = [secret.encode() for secret in secrets]
        self._clock = clock

    async def read(self, request: Request) -> SlackRequest:
        """What `request` says: `Depends(slack.read)` in FastAPI, and awaited elsewhere.

        Raises:
            InvalidRequest: It is not Slack's, or too old (401); or it says nothing (400).
        """
        body = await request.body()
        self.check(body, request.headers)
        read = _read(body, request.headers)
        mark(request, read.delivery)
        return read

    def check(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Return only if Slack signed `body` a moment ago.

        Args:
            body: The body, byte for byte as it came.
            headers: The headers, by names of whatever case or by their lower case.

        Raises:
            InvalidRequest: It did not (401).
        """
        sent = headers.get("x-slack-request-timestamp", "")
        signature = headers.get("x-slack-signature", "")
        stamped = sent.isascii() and sent.isdigit() and len(sent) < 16
        if not stamped or abs(self._clock() - int(sent)) > WINDOW:
            raise _unsigned("has no time, or one that is not now")
        text = b"v0:" + sent.encode() + b":" + body
        found = [
            hmac.compare_digest(
                f"v0={hmac.new(secret, text, hashlib.sha256).hexdigest()}".encode(),
                signature.encode(errors="replace"),
            )
            for secret in self._secrets
        ]
        if not any(found):
            raise _unsigned("does not have Slack's signature")


def acknowledge(
    work: Callable[[], Any] | None = None,
    *,
    tell: Callable[[Problem], Any] | None = None,
    challenge: str | None = None,
) -> Response:
    """The response that keeps Slack content; `work` is done once it has been sent.

    The work is done in this process, and Slack sends nothing again once it was told that
    all is well: what dies with the process is asked again by whoever looks, not by Slack.

    Args:
        work: Delivers the answer. A plain function runs in a thread of its own.
        tell: Is given the problem when `work` is refused or fails in the gate, and can
            say so to whoever clicked.
        challenge: `SlackRequest.challenge`, to be sent back.
    """
    if challenge is not None:
        return JSONResponse({"challenge": challenge})
    return Response(background=None if work is None else BackgroundTask(_do, work, tell))


async def _do(work: Callable[[], Any], tell: Callable[[Problem], Any] | None) -> None:
    try:
        await _call(work)
    except RemitError as error:
        # Nobody waits for the response any more, so what became of it is said here.
        level = logging.INFO if isinstance(error, ResumeRefused) else logging.ERROR
        LOGGER.log(level, "After it was acknowledged to Slack: %s", error)
        if tell is not None:
            told = problem(error)
            await _call(lambda: tell(told))


async def _call(function: Callable[[], Any]) -> None:
    result = await run_in_threadpool(function)
    if isinstance(result, Awaitable):
        await result


def _read(body: bytes, headers: Mapping[str, str]) -> SlackRequest:
    payload = _payload(body)
    actions = [each for each in payload.get("actions") or () if isinstance(each, Mapping)]
    action = actions[0] if actions else {}
    view = _part(payload, "view")
    retry = headers.get("x-slack-retry-num", "")
    return SlackRequest(
        payload=payload,
        delivery=_delivery(payload, action) or f"slack:body/{hashlib.sha256(body).hexdigest()}",
        actor=_actor(payload),
        value=_text(action.get("value")),
        action=_text(action.get("action_id")) or _text(view.get("callback_id")),
        response_url=_text(payload.get("response_url")),
        challenge=_text(payload.get("challenge")),
        retry=int(retry) if retry.isascii() and retry.isdigit() and len(retry) < 9 else 0,
        retry_reason=headers.get("x-slack-retry-reason"),
    )


def _payload(body: bytes) -> Mapping[str, Any]:
    """Slack sends events as JSON, clicks as JSON in a form, and commands as a form."""
    try:
        text = body.decode()
        if text.lstrip().startswith("{"):
            found = json.loads(text)
        else:
            form = {name: values[0] for name, values in parse_qs(text).items()}
            found = json.loads(form["payload"]) if "payload" in form else form
    except ValueError:
        found = None
    if not isinstance(found, Mapping) or not found:
        raise InvalidRequest(
            "The body is none of Slack's: neither JSON nor a form. Nothing was done.",
            name="slack-payload-invalid",
        )
    return found


def _delivery(payload: Mapping[str, Any], action: Mapping[str, Any]) -> str | None:
    """The delivery id: the question where it is known, else what Slack names the request.

    Events are what Slack sends again by itself, under the same `event_id`. Clicks it does
    not send again; a second click has its own `action_ts` and `trigger_id`, but the same
    message and block.
    """
    team = _id(_part(payload, "team")) or _text(payload.get("team_id")) or ""
    event = _text(payload.get("event_id"))
    if event:
        return f"slack:{team}/event/{event}"
    place = _part(payload, "container")
    message = _text(place.get("message_ts")) or _text(payload.get("message_ts"))
    channel = _text(place.get("channel_id")) or _id(_part(payload, "channel"))
    if message:
        block = _text(action.get("block_id")) or _text(payload.get("callback_id")) or ""
        return f"slack:{team}/message/{channel or ''}/{message}/{block}"
    view = _id(_part(payload, "view"))
    if view:
        return f"slack:{team}/view/{view}/{_text(action.get('block_id')) or ''}"
    trigger = _text(payload.get("trigger_id"))
    return f"slack:{team}/trigger/{trigger}" if trigger else None


def _actor(payload: Mapping[str, Any]) -> str | None:
    user = (
        _id(_part(payload, "user"))
        or _text(payload.get("user_id"))
        or _text(_part(payload, "event").get("user"))
    )
    team = _id(_part(payload, "team")) or _text(payload.get("team_id")) or ""
    return f"slack:{team}/{user}" if user else None


def _part(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = payload.get(name)
    return found if isinstance(found, Mapping) else {}


def _id(part: Mapping[str, Any]) -> str | None:
    return _text(part.get("id"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _unsigned(why: str) -> InvalidRequest:
    return InvalidRequest(
        f"The request {why}. Nothing was done.", name="slack-signature-invalid", http_status=401
    )
