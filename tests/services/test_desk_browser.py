"""People at the approval desk, in a real browser: whatever they press, and however often, it
is done once, and each of them reads what happened."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from typing import Literal

import pytest
from browser import find
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.services.running import PATIENCE, Service


MILLISECONDS = PATIENCE * 1000
TRIES = 10

pytestmark = pytest.mark.timeout(2 * PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. That there is one is the Makefile's business, not a test's."""
    path = find()
    assert path is not None, "There is no Chromium: run `make browser`."
    # As root, Chromium's sandbox cannot be had.
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=[*args, "--disable-dev-shm-usage"], timeout=MILLISECONDS
        )
        yield browser
        browser.close()


@pytest.fixture(params=[True, False], ids=["with-script", "without-script"])
def user(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    """One person's browser, with and without JavaScript: the page has none of its own."""
    context = browser.new_context(java_script_enabled=request.param)
    context.set_default_timeout(MILLISECONDS)
    yield context
    context.close()


def tab(user: BrowserContext, service: Service, name: str) -> Page:
    """A new tab with the page."""
    page = user.new_page()
    page.goto(f"{service.url}/?as={name}")
    return page


def press(page: Page, button: str, effect: str) -> None:
    page.get_by_role("button", name=f"{button}: {effect}, Mara").click(no_wait_after=True)


def press_twice(page: Page, button: str, effect: str) -> bool:
    """A double click, of which the second click comes when the first one's request is out.
    Chromium makes one request of two clicks that come in the same moment.

    Returns:
        Whether the second click was in time: an answer that came before it has put another
        page under the pointer.
    """
    found = page.get_by_role("button", name=f"{button}: {effect}, Mara").bounding_box()
    assert found is not None
    page.mouse.move(found["x"] + found["width"] / 2, found["y"] + found["height"] / 2)
    with page.expect_request(lambda request: request.method == "POST") as first:
        page.mouse.down(click_count=1)
        page.mouse.up(click_count=1)
    sent: list[str | None] = [first.value.post_data]
    page.on("request", lambda request: sent.append(request.post_data))
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    expect(page.get_by_role("status")).to_be_visible(timeout=MILLISECONDS)
    return sent.count(sent[0]) == 2


def doubly_approved(service: Service, user: BrowserContext, then: str = "") -> tuple[Page, str]:
    """A tab with what came of a double click, and the effect that was approved by it.

    Args:
        service: The desk.
        user: Who clicks.
        then: What the run asks next.
    """
    for _ in range(TRIES):
        effect = f"Refund {uuid.uuid4().hex[:8]}"
        service.open("Mara", effect, *filter(None, [then]))
        page = tab(user, service, "ann")
        if press_twice(page, "Approve", effect):
            return page, effect
    pytest.fail(f"the answer was there before the second click, {TRIES} times")


def reads(page: Page, role: Literal["status", "alert"], sentence: str | re.Pattern[str]) -> None:
    """Wait until the page says `sentence` where a screen reader would read it out."""
    expect(page.get_by_role(role)).to_contain_text(sentence, timeout=MILLISECONDS)


def new_effect(service: Service) -> tuple[str, str]:
    """An effect that nobody has had yet, and the ticket of its question."""
    effect = f"Refund {uuid.uuid4().hex[:8]}"
    return effect, service.open("Mara", effect)


def test_a_double_click_on_approve(service: Service, user: BrowserContext) -> None:
    page, effect = doubly_approved(service, user)

    reads(page, "status", f"You approved “{effect}”. It was done, once.")
    assert len(service.done(effect)) == 1
    assert page.get_by_role("row").filter(has_text=effect).count() == 1


def test_a_double_click_of_which_the_next_question_is_none_of_the_second(
    service: Service, user: BrowserContext
) -> None:
    wire = f"Wire {uuid.uuid4().hex[:8]}"

    page, refund = doubly_approved(service, user, wire)

    # Either click may come first to a worker. The page shows what became of the second.
    reads(
        page, "status", re.compile(f"You approved (this already, at|“{refund}”. It was done, once)")
    )
    assert (len(service.done(refund)), len(service.done(wire))) == (1, 0)
    assert page.get_by_role("button", name=f"Approve: {wire}, Mara").count() == 1


@pytest.mark.parametrize("second", ["Approve", "Reject"])
def test_two_tabs(service: Service, user: BrowserContext, second: str) -> None:
    """The second tab still shows the question that was answered in the first."""
    refund, wire = f"Refund {uuid.uuid4().hex[:8]}", f"Wire {uuid.uuid4().hex[:8]}"
    service.open("Mara", refund, wire)
    anns, bens = tab(user, service, "ann"), tab(user, service, "ben")

    press(anns, "Approve", refund)
    reads(anns, "status", f"You approved “{refund}”. It was done, once.")
    press(bens, second, refund)
    reads(bens, "alert", "Ann approved this already, at")
    reads(bens, "alert", "Your click changed nothing.")

    assert (len(service.done(refund)), len(service.done(wire))) == (1, 0)
    assert bens.get_by_role("button", name=f"Approve: {wire}, Mara").count() == 1


def test_two_tabs_at_the_same_moment(service: Service, user: BrowserContext) -> None:
    effect, _ = new_effect(service)
    anns, bens = tab(user, service, "ann"), tab(user, service, "ben")

    press(anns, "Approve", effect)
    press(bens, "Approve", effect)

    for page in (anns, bens):
        reads(page, "status", f"approved “{effect}”. It was done, once.")
    assert len(service.done(effect)) == 1


def test_to_load_the_answer_s_page_again_changes_nothing(
    service: Service, user: BrowserContext
) -> None:
    """Which sends the form again."""
    effect, _ = new_effect(service)
    page = tab(user, service, "ann")
    press(page, "Approve", effect)
    reads(page, "status", "It was done, once.")

    page.reload()

    reads(page, "status", "You approved this already, at")
    assert len(service.done(effect)) == 1


def test_a_webhook_that_comes_again_while_somebody_looks(
    service: Service, user: BrowserContext
) -> None:
    effect, ticket = new_effect(service)
    page = tab(user, service, "ann")
    workers: set[str] = set()
    with service.client() as client:
        while len(workers) < 2:
            told = client.post(
                "/webhook",
                json={"ticket": ticket, "answer": "approve", "by": "mail"},
                headers={"Idempotency-Key": '"msg-1"'},
            )
            assert told.status_code == 200
            workers.add(told.headers["x-worker"])

    press(page, "Reject", effect)

    reads(page, "alert", "Mail approved this already, at")
    assert len(service.done(effect)) == 1


def test_the_page_names_what_it_shows(service: Service, user: BrowserContext) -> None:
    """What a screen reader needs: a language, a title, one heading, names for each control."""
    effect, _ = new_effect(service)
    page = tab(user, service, "ann")

    assert page.title() == "Approval desk"
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_label("You are").input_value() == "ann"
    names = [button.get_attribute("aria-label") for button in page.locator(".approve").all()]
    assert f"Approve: {effect}, Mara" in names
    assert len(names) == len(set(names))
