"""The example service: two workers, one database, and whoever sends an answer twice."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from benchmarks.submissions import REPLAYED, SERVED, Report, submit
from examples.approval_desk.__main__ import database
from tests.services.running import PATIENCE, Service


pytestmark = pytest.mark.timeout(2 * PATIENCE)

TRIES = 200
"""Connections after which the other worker would have taken one."""


def webhook(client: httpx.Client, ticket: str, answer: str, key: str) -> httpx.Response:
    body = {"ticket": ticket, "answer": answer}
    return client.post("/webhook", json=body, headers={"Idempotency-Key": f'"{key}"'})


def press(client: httpx.Client, ticket: str, answer: str, by: str) -> httpx.Response:
    return client.post("/answers", data={"ticket": ticket, "answer": answer, "by": by})


def test_the_webhook_again_at_the_other_worker(service: Service) -> None:
    effect = f"Refund {uuid.uuid4()}"
    ticket = service.open("Mara", effect)
    with service.client() as client:
        first = webhook(client, ticket, "approve", "key-1")
        assert (first.status_code, "idempotent-replayed" in first.headers) == (200, False)
        for _ in range(TRIES):
            again = webhook(client, ticket, "approve", "key-1")
            assert again.status_code == 200
            assert again.headers["idempotent-replayed"] == "true"
            assert again.json()["outcome"]["state"] == "finished"
            if again.headers["x-worker"] != first.headers["x-worker"]:
                break
        else:
            pytest.fail("the other worker never took a connection")
        other = webhook(client, ticket, "reject", "key-1")

    assert other.status_code == 422
    assert len(service.done(effect)) == 1


def test_the_refund_s_approval_does_not_wire(service: Service) -> None:
    refund, wire = f"Refund {uuid.uuid4()}", f"Wire {uuid.uuid4()}"
    ticket = service.open("Mara", refund, wire)
    with service.client() as client:
        statuses = [webhook(client, ticket, "approve", key).status_code for key in "aab"]

    assert statuses == [200, 200, 409]
    assert (len(service.done(refund)), len(service.done(wire))) == (1, 0)


def test_two_people_press_at_the_same_time(service: Service) -> None:
    """Whoever comes second waits, and reads what whoever was first reads."""
    effect = f"Refund {uuid.uuid4()}"
    ticket = service.open("Mara", effect)

    def presses(by: str) -> httpx.Response:
        with service.client() as client:
            return press(client, ticket, "approve", by)

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(presses, ["ann", "ben", "ann", "ben"]))

    assert [answer.status_code for answer in answers] == [200] * 4
    [entry] = service.done(effect)
    first = entry["approved_by"].capitalize()
    for by, answer in zip(["Ann", "Ben"] * 2, answers, strict=True):
        who = "You" if by == first else first
        assert f"{who} approved “{effect}”. It was done, once." in answer.text


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ("approve", "Ann approved this already, at"),
        ("reject", "Your click changed nothing."),
    ],
)
def test_a_page_that_is_out_of_date(service: Service, second: str, sentence: str) -> None:
    refund, wire = f"Refund {uuid.uuid4()}", f"Wire {uuid.uuid4()}"
    ticket = service.open("Mara", refund, wire)
    with service.client() as client:
        press(client, ticket, "approve", "ann")
        late = press(client, ticket, second, "ben")

    assert late.status_code == 409
    assert sentence in late.text
    assert "Ann approved this already" in late.text
    assert (len(service.done(refund)), len(service.done(wire))) == (1, 0)


@pytest.mark.parametrize("text", ["", "AgAA", "x" * 5000, "é"])
def test_a_forged_ticket_gets_nowhere(service: Service, text: str) -> None:
    with service.client() as client:
        page, program = press(client, text, "approve", "ann"), webhook(client, text, "approve", "k")

    assert program.status_code == 400
    assert program.json()["type"] == "urn:remit-gates:problem:ticket-invalid"
    assert page.status_code in {400, 422}


def test_what_a_visitor_types_is_text(service: Service) -> None:
    service.open("<script>alert(1)</script>", "<b>bold</b>")
    with service.client() as client:
        shown = client.get("/", params={"as": '"><script>x'})

    assert "<script>" not in shown.text
    assert "<b>bold" not in shown.text
    assert shown.headers["content-security-policy"].startswith("default-src 'none'")


def test_it_opens_with_cases_to_decide(service: Service) -> None:
    oldest = sorted(case["waits"][0]["asks"] for case in service.cases()[-3:])

    assert oldest == ["Raise the credit limit to $5,000", "Refund $10", "Refund $249"]


def test_a_database_that_is_named_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_POSTGRES_URL", "postgresql://elsewhere/desk")
    with database() as url:
        assert url == "postgresql://elsewhere/desk"


CASES = 200


def test_two_hundred_double_submissions(service: Service) -> None:
    report = asyncio.run(submit(service.url, CASES))

    assert report.faults == [], str(report)
    assert len(report.pairs) == len(report.effects) == CASES
    log = service.log.read_text(encoding="utf-8")
    assert log.count('"POST /webhook HTTP/1.1" 5') == 0
    assert "Traceback" not in log


@pytest.mark.parametrize(
    "report",
    [
        Report([(SERVED, SERVED)], Counter({"a": 1})),
        Report([(REPLAYED, REPLAYED)], Counter({"a": 1})),
        Report([(SERVED, "500")], Counter({"a": 1})),
        Report([(SERVED, "409 failed")], Counter({"a": 1})),
        Report([(SERVED, REPLAYED)], Counter({"a": 2})),
        Report([(SERVED, REPLAYED)], Counter({"a": 0})),
    ],
)
def test_a_report_finds_fault(report: Report) -> None:
    assert len(report.faults) == 1
    assert "FAULT" in str(report)
