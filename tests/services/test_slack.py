"""What is taken for a request of Slack's, what it is called, and when it is acknowledged."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import threading
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import Depends, FastAPI
from starlette.testclient import TestClient

from remit_gates import AlreadyConsumed, NotParked, Reason, RunKey, UsageError
from remit_gates.http import InvalidRequest, Problem, add_handlers
from remit_gates.http.slack import WINDOW, Slack, SlackRequest, _read, acknowledge
from tests.services.desks import Desk


NOW = 1_531_420_618.0
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"

# The example of Slack's own documentation, which nobody here computed.
COMMAND = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
    b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def signed(body: bytes, secret: str = SECRET, at: float = NOW) -> dict[str, str]:
    text = b"v0:%d:%b" % (at, body)
    made = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return {"x-slack-request-timestamp": str(int(at)), "x-slack-signature": f"v0={made}"}


def form(payload: Any) -> bytes:
    return urlencode({"payload": json.dumps(payload)}).encode()


def click(**changes: Any) -> dict[str, Any]:
    """A click on a button of a message, as Slack sends it; cut to what matters."""
    payload: dict[str, Any] = {
        "type": "block_actions",
        "team": {"id": "T1", "domain": "shop"},
        "user": {"id": "U1", "username": "ann"},
        "trigger_id": "1.2.abc",
        "container": {"type": "message", "message_ts": "1548261231.0002", "channel_id": "C1"},
        "channel": {"id": "C1"},
        "response_url": "https://hooks.slack.com/actions/T1/1/x",
        "actions": [
            {
                "action_id": "approve",
                "block_id": "b1",
                "value": "a ticket",
                "type": "button",
                "action_ts": "1548426417.84",
            }
        ],
    }
    return {**payload, **changes}


def read(payload: Any, **headers: str) -> SlackRequest:
    return _read(form(payload), headers)


# Signatures.


def test_slacks_own_example_is_slacks() -> None:
    headers = {"x-slack-request-timestamp": "1531420618", "x-slack-signature": SIGNATURE}
    Slack(SECRET, clock=Clock()).check(COMMAND, headers)


def refused(body: bytes, headers: dict[str, str], clock: Clock | None = None) -> str:
    with pytest.raises(InvalidRequest) as raised:
        Slack(SECRET, clock=clock or Clock()).check(body, headers)
    assert (raised.value.http_status, raised.value.name) == (401, "slack-signature-invalid")
    return str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        {"x-slack-signature": ""},
        {"x-slack-signature": SIGNATURE[:-1]},
        {"x-slack-signature": SIGNATURE[:-1] + "4"},
        {"x-slack-signature": SIGNATURE.upper()},
        {"x-slack-signature": SIGNATURE.removeprefix("v0=")},
        {"x-slack-signature": "v0=\xe9\ud800"},
        {"x-slack-request-timestamp": "1531420619"},
        {"x-slack-request-timestamp": ""},
        {"x-slack-request-timestamp": "1531420618.0"},
        {"x-slack-request-timestamp": "-1531420618"},
        {"x-slack-request-timestamp": "nan"},
        {"x-slack-request-timestamp": "²"},
        {"x-slack-request-timestamp": "9" * 5000},
    ],
)
def test_what_slack_did_not_sign_is_not_slacks(change: dict[str, str]) -> None:
    right = {"x-slack-request-timestamp": "1531420618", "x-slack-signature": SIGNATURE}
    said = refused(COMMAND, {**right, **change})

    assert SIGNATURE[3:] not in said
    assert SECRET not in said


def test_another_body_is_not_slacks() -> None:
    refused(COMMAND + b"&more=1", signed(COMMAND))


def test_another_apps_signature_is_not_slacks() -> None:
    refused(COMMAND, signed(COMMAND, "another secret"))


@pytest.mark.parametrize("way", [1, -1])
def test_a_request_is_old_after_five_minutes(way: int) -> None:
    clock = Clock()
    clock.now += way * WINDOW
    Slack(SECRET, clock=clock).check(COMMAND, signed(COMMAND))
    clock.now += way
    refused(COMMAND, signed(COMMAND), clock)


def test_while_a_secret_is_replaced_both_are_known() -> None:
    slack = Slack(["new", SECRET], clock=Clock())
    for secret in ("new", SECRET):
        slack.check(COMMAND, signed(COMMAND, secret))


@pytest.mark.parametrize("secret", ["", [], ["new", ""]])
def test_an_empty_secret_is_none(secret: Any) -> None:
    with pytest.raises(UsageError, match="empty"):
        Slack(secret)


# Names.


def test_a_click_is_named_for_its_question() -> None:
    found = read(click())

    assert found.delivery == "slack:T1/message/C1/1548261231.0002/b1"
    assert (found.actor, found.action, found.value) == ("slack:T1/U1", "approve", "a ticket")
    assert found.response_url == "https://hooks.slack.com/actions/T1/1/x"
    assert (found.retry, found.retry_reason, found.challenge) == (0, None, None)


def test_a_second_click_is_the_same_delivery() -> None:
    first = click()
    button = {**first["actions"][0], "action_ts": "1548426418.11", "action_id": "reject"}
    second = click(trigger_id="1.3.def", actions=[button], user={"id": "U2"})

    assert read(second).delivery == read(first).delivery
    assert read(second).actor == "slack:T1/U2"


@pytest.mark.parametrize(
    "change",
    [
        {"container": {"message_ts": "1548261299.0001", "channel_id": "C1"}},
        {"container": {"message_ts": "1548261231.0002", "channel_id": "C2"}},
        {"team": {"id": "T2"}},
        {"actions": [{"block_id": "b2"}]},
        {"container": {"type": "view", "view_id": "V1"}, "view": {"id": "V1"}},
        {"container": {}},
        {"event_id": "Ev1"},
    ],
)
def test_another_question_is_another_delivery(change: dict[str, Any]) -> None:
    assert read(click(**change)).delivery != read(click()).delivery


def test_an_event_that_is_sent_again_is_the_same_delivery() -> None:
    event = {"type": "event_callback", "team_id": "T1", "event_id": "Ev08", "event": {"user": "U3"}}
    body = json.dumps(event).encode()
    again = {"x-slack-retry-num": "2", "x-slack-retry-reason": "http_timeout"}

    first, third = _read(body, {}), _read(body, again)

    assert first.delivery == third.delivery == "slack:T1/event/Ev08"
    assert (first.retry, third.retry, third.retry_reason) == (0, 2, "http_timeout")
    assert third.actor == "slack:T1/U3"


def test_a_modal_and_a_command_have_names() -> None:
    modal = {"type": "view_submission", "team": {"id": "T1"}, "trigger_id": "9.9"}
    modal["view"] = {"id": "V7", "callback_id": "refund"}

    assert read(modal).delivery == "slack:T1/view/V7/"
    assert read(modal).action == "refund"
    command = _read(COMMAND, {})
    assert command.delivery == (
        "slack:T1DC2JH3J/trigger/398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    assert command.actor == "slack:T1DC2JH3J/U2CERLKJA"


def test_what_has_no_name_is_named_for_its_body() -> None:
    assert read({"a": 1}).delivery == read({"a": 1}).delivery != read({"a": 2}).delivery


@pytest.mark.parametrize(
    "payload", [{"actions": [None, 3], "container": [], "view": "V", "team": None}, {"actions": {}}]
)
def test_a_payload_of_another_shape_is_read_as_far_as_it_goes(payload: Any) -> None:
    assert (read(payload).value, read(payload).actor) == (None, None)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"payload=x", b"payload=[1]", b"\xff\xfe"])
def test_a_body_that_says_nothing_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as raised:
        _read(body, {})

    assert (raised.value.http_status, raised.value.name) == (400, "slack-payload-invalid")


@pytest.mark.parametrize("number", ["", "x", "-1", "²", "9" * 5000])
def test_a_retry_number_that_is_none_counts_as_the_first_time(number: str) -> None:
    assert _read(b'{"event_id": "E"}', {"x-slack-retry-num": number}).retry == 0


def test_neither_ticket_nor_payload_shows_in_a_log() -> None:
    assert "ticket" not in repr(read(click()))
    assert "hooks" not in repr(read(click()))


# Acknowledged in time.


class Service:
    """An application whose runs take as long as the test likes."""

    def __init__(self, outcome: Exception | None = None) -> None:
        self.seen: list[SlackRequest] = []
        self.told: list[Problem] = []
        self.may_end = threading.Event()
        self.ended = threading.Event()
        self.app = FastAPI()
        add_handlers(self.app)
        arrived = Depends(Slack(SECRET, clock=Clock()).read)

        def run() -> None:
            assert self.may_end.wait(20)
            self.ended.set()
            if outcome is not None:
                raise outcome

        async def run_async() -> None:
            await asyncio.to_thread(run)

        @self.app.post("/slack/{colour}")
        async def slack(colour: str, sent: SlackRequest = arrived) -> Any:
            self.seen.append(sent)
            work = run if colour == "sync" else run_async
            return acknowledge(work, tell=self.told.append, challenge=sent.challenge)


async def posted(app: Any, body: bytes, colour: str, acknowledged: asyncio.Event) -> list[Any]:
    """The messages that `app` sends for a POST; says when the response is complete."""
    sent: list[Any] = []
    came = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return came.pop() if came else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            acknowledged.set()

    headers = [(name.encode(), value.encode()) for name, value in signed(body).items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/slack/{colour}",
        "query_string": b"",
        "headers": headers,
    }
    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.asyncio
async def test_it_is_acknowledged_before_the_run_has_begun_to_end(colour: str) -> None:
    """However long the run: three seconds are kept because nothing is waited for."""
    service = Service()
    acknowledged = asyncio.Event()
    request = asyncio.create_task(posted(service.app, form(click()), colour, acknowledged))

    await acknowledged.wait()
    assert not service.ended.is_set()
    service.may_end.set()
    sent = await request

    assert sent[0]["status"] == 200
    assert service.ended.is_set()
    assert service.told == []


def post(service: Service, body: bytes, **headers: str) -> Any:
    service.may_end.set()
    with TestClient(service.app) as client:
        return client.post("/slack/sync", content=body, headers={**signed(body), **headers})


def test_whoever_clicked_is_told_of_a_refusal_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = RunKey("langgraph", "", "order-17")
    service = Service(NotParked("nothing waits", reason=Reason.NOT_PARKED, run=run))

    with caplog.at_level(logging.INFO, "remit_gates.http"):
        assert post(service, form(click())).status_code == 200

    assert [told.type for told in service.told] == ["urn:remit-gates:problem:not-parked"]
    assert "nothing waits" in caplog.text


def test_what_is_no_error_of_ours_is_left_to_the_server() -> None:
    with pytest.raises(KeyError):
        post(Service(KeyError("mine")), form(click()))


def test_a_stranger_gets_401_and_nothing_is_done() -> None:
    service = Service()
    told = post(service, form(click()), **{"x-slack-signature": "v0=0"})

    assert (told.status_code, told.headers["content-type"]) == (401, "application/problem+json")
    assert service.seen == []


def test_slack_may_check_the_url() -> None:
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1"}).encode()
    service = Service()

    assert post(service, body).json() == {"challenge": "3eZbrw1"}
    assert not service.ended.is_set()


def test_a_late_click_on_an_answered_question_does_not_answer_the_next_one() -> None:
    """Though the button has no ticket: the message that was clicked names the question."""
    desk = Desk()
    desk.ask("order-17")

    def clicked(sent: SlackRequest) -> Any:
        return desk.deliver("order-17", str(sent.action), sent.delivery)

    refund = read(click())
    assert clicked(refund) == {"waits": True}
    with pytest.raises(AlreadyConsumed) as raised:
        clicked(read(click(trigger_id="1.9.z")))

    assert raised.value.same_answer is True
    assert desk.paid == ["approve"]
    wire = read(click(container={"message_ts": "1548261300.0009", "channel_id": "C1"}))
    assert clicked(wire) == {"waits": False}
