"""What each error looks like from outside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from remit_gates import Claim, Consumption, Holder, Intent, Outcome, Phase, Reason, RunKey, errors
from remit_gates._refusal import _KINDS
from remit_gates.http import InvalidRequest, problem
from remit_gates.http._problems import replayed


RUN = RunKey("langgraph", "shop", "order-17")
HOLDER = Holder("secret-host", 4711, "99", "nonce")


def consumption(**changes: Any) -> Consumption:
    known: dict[str, Any] = {
        "pause": "c1:i1",
        "generation": 0,
        "token": 7,
        "attempt": 1,
        "phase": Phase.SETTLED,
        "digest": "d1",
        "delivery": "msg-1",
        "actor": "ann",
        "holder": HOLDER,
        "since": 1_800_000_000.0,
        "until": 1_800_000_001.5,
        "outcome": Outcome("finished", "c2"),
    }
    return Consumption(**{**known, **changes})


CLAIM = Claim(HOLDER, 7, 1, Intent.ANSWER, ("c1:i1",), 30.0, 1_800_000_000.0, "k", actor="ann")


def refused(reason: Reason, **known: Any) -> errors.ResumeRefused:
    return _KINDS[reason]("words of the gate, for its log", reason=reason, run=RUN, **known)


def consumed(same: bool | None, **changes: Any) -> errors.ResumeRefused:
    return refused(Reason.CONSUMED, consumption=consumption(**changes), same_answer=same)


STATUS = {
    Reason.IN_PROGRESS: 409,
    Reason.CONSUMED: 409,
    Reason.FAILED: 409,
    Reason.ABANDONED: 409,
    Reason.STALE_TICKET: 410,
    Reason.NOT_PARKED: 409,
    Reason.SUPERSEDED: 409,
}


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_a_type_of_its_own(reason: Reason) -> None:
    told = problem(refused(reason, claim=CLAIM, consumption=consumption()))

    assert told.type == f"urn:remit-gates:problem:{reason.value.replace('_', '-')}"
    assert (told.status, told.body["status"]) == (STATUS[reason], STATUS[reason])
    assert told.body["reason"] == reason.value
    assert told.detail.count("This answer was not used.") == 1


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_told_though_nothing_is_known(reason: Reason) -> None:
    told = problem(refused(reason))

    assert "{" not in told.detail
    assert set(told.body) == {"type", "title", "status", "detail", "reason"}


OTHERS = [
    (errors.StoreUnavailable, "store-unavailable", 503),
    (errors.OutcomeUnknown, "outcome-unknown", 503),
    (errors.ClaimLost, "claim-lost", 500),
    (errors.InvalidState, "invalid-state", 422),
    (errors.StoreError, "store-not-ready", 500),
    (errors.SetupRequired, "store-not-ready", 500),
    (errors.SchemaMismatch, "store-not-ready", 500),
    (errors.StoreMisconfigured, "store-not-ready", 500),
    (errors.UsageError, "service-at-fault", 500),
    (errors.GateNotEngaged, "service-at-fault", 500),
    (errors.UnsupportedVersion, "service-at-fault", 500),
    (errors.MissingExtra, "service-at-fault", 500),
    (errors.RemitError, "service-at-fault", 500),
]


@pytest.mark.parametrize(("kind", "name", "status"), OTHERS)
def test_each_other_error_has_its_type(
    kind: type[errors.RemitError], name: str, status: int
) -> None:
    told = problem(kind("postgresql://ann:password@db is away"))

    assert (told.type, told.status) == (f"urn:remit-gates:problem:{name}", status)
    assert "password" not in json.dumps(told.body)


def test_every_error_of_the_tree_is_told() -> None:
    tested = {kind for kind, _, _ in OTHERS} | set(_KINDS.values())

    assert tested | {errors.ResumeRefused} == {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RemitError)
    }


def test_it_says_who_and_when_and_what_came_of_it() -> None:
    told = problem(consumed(True), "another message")

    assert told.detail == (
        "This was already answered by ann at 2027-01-15 08:00:00 UTC, and everything that"
        " followed is done. This answer was not used."
    )
    assert told.body == {
        "type": "urn:remit-gates:problem:consumed",
        "title": "Already answered",
        "status": 409,
        "detail": told.detail,
        "reason": "consumed",
        "same_answer": True,
        "answered_at": "2027-01-15T08:00:00Z",
        "answered_by": "ann",
        "outcome": {"state": "finished", "position": "c2", "ended_at": "2027-01-15T08:00:01Z"},
    }


def test_it_names_no_process_and_no_host_and_no_digest() -> None:
    for reason in Reason:
        text = json.dumps(problem(refused(reason, claim=CLAIM, consumption=consumption())).body)
        assert not [word for word in ("secret-host", "4711", "nonce", "d1", "shop") if word in text]


@pytest.mark.parametrize(("seconds", "header"), [(0.0, 1), (0.2, 1), (1.0, 1), (29.01, 30)])
def test_retry_after_is_whole_seconds_and_never_too_soon(seconds: float, header: int) -> None:
    told = problem(refused(Reason.IN_PROGRESS, claim=CLAIM, retry_after=seconds))

    assert told.headers == {"Retry-After": str(header)}
    assert told.body["retry_after"] == header


def test_where_waiting_changes_nothing_there_is_no_retry_after() -> None:
    assert problem(consumed(True)).headers == {}
    assert "retry_after" not in problem(consumed(True)).body


@pytest.mark.parametrize("kind", [errors.StoreUnavailable, errors.OutcomeUnknown])
def test_what_passes_by_itself_says_when_to_send_again(kind: type[errors.RemitError]) -> None:
    assert problem(kind("…")).headers == {"Retry-After": "5"}


def test_the_same_answer_under_the_same_id_is_a_replay() -> None:
    assert replayed(consumed(True), "msg-1") == {
        "same_answer": True,
        "answered_at": "2027-01-15T08:00:00Z",
        "answered_by": "ann",
        "outcome": {"state": "finished", "position": "c2", "ended_at": "2027-01-15T08:00:01Z"},
    }


@pytest.mark.parametrize(
    ("error", "delivery"),
    [
        (consumed(True), None),
        (consumed(True), "msg-2"),
        (consumed(True, delivery=None), None),
        (consumed(False), "msg-1"),
        (consumed(None), "msg-1"),
        (refused(Reason.CONSUMED), "msg-1"),
        (refused(Reason.FAILED, consumption=consumption(), same_answer=True), "msg-1"),
        (refused(Reason.ABANDONED, consumption=consumption(), same_answer=True), "msg-1"),
        (refused(Reason.STALE_TICKET, consumption=consumption(), same_answer=True), "msg-1"),
        (errors.StoreUnavailable("…"), "msg-1"),
    ],
)
def test_nothing_else_is_a_replay(error: errors.RemitError, delivery: str | None) -> None:
    assert replayed(error, delivery) is None


@pytest.mark.parametrize("reason", [Reason.CONSUMED, Reason.FAILED])
def test_another_answer_under_the_same_id_is_a_mistake_of_the_senders(reason: Reason) -> None:
    error = refused(reason, consumption=consumption(), same_answer=False)

    assert problem(error, "msg-1").status == 422
    assert problem(error, "msg-1").type == "urn:remit-gates:problem:idempotency-key-reused"
    assert problem(error, "msg-2").status == 409
    assert problem(error).status == 409


def test_an_invalid_request_says_what_is_wrong_with_it() -> None:
    told = problem(InvalidRequest("A header is missing.", name="header-missing", http_status=401))

    assert (told.status, told.type) == (401, "urn:remit-gates:problem:header-missing")
    assert told.detail == "A header is missing."


def test_the_documents_table_is_the_whole_of_it() -> None:
    page = Path(__file__).parents[2] / "docs" / "services.md"
    rows = re.findall(
        r"^\| `([\w-]+)` \| (\d{3})(, `Retry-After`)? \|", page.read_text("utf-8"), re.MULTILINE
    )
    documented = {name: (int(status), bool(again)) for name, status, again in rows}

    def told(error: errors.RemitError, delivery: str | None = None) -> None:
        found = problem(error, delivery)
        name = found.type.removeprefix("urn:remit-gates:problem:")
        assert documented.pop(name) == (found.status, found.retry_after is not None), name

    for reason in Reason:
        told(refused(reason, retry_after=9.0 if reason is Reason.IN_PROGRESS else None))
    told(consumed(False), "msg-1")
    for name, kind in {name: kind for kind, name, _ in reversed(OTHERS)}.items():
        assert name in documented
        told(kind("…"))
    by_request = {name: status for name, (status, _) in documented.items()}
    assert by_request == {
        "idempotency-key-missing": 400,
        "idempotency-key-invalid": 400,
        "ticket-invalid": 400,
        "slack-signature-invalid": 401,
        "slack-payload-invalid": 400,
    }
