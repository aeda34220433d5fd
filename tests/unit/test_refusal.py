"""What a refusal says: what happened, to what, what was not done, and what to do next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_gates._decide import Refused, settle
from remit_gates._drive import drive
from remit_gates._model import Answer, Delivery, Intent, Outcome, Reason
from remit_gates._passage import Denied, fence, leave
from remit_gates._policy import Policy
from remit_gates._refusal import NOTHING_RAN, Verbs, refusal
from remit_gates.errors import (
    Abandoned,
    AlreadyConsumed,
    ClaimLost,
    InProgress,
    NotParked,
    ResumeRefused,
    StaleTicket,
    Superseded,
    UsageError,
)
from tests.unit.worlds import RUN, Ledger, World, holder


VERBS = Verbs(go_on="GO ON", ask="ASK", fork="FORK")


def denied(ledger: Ledger, verdict: Any, *pauses: str, waited: bool = False, **rest: Any) -> Denied:
    assert isinstance(verdict, Refused)
    answers = tuple(Answer(pause, "yes") for pause in pauses)
    delivery = Delivery(Intent.ANSWER, holder("b"), answers, **rest)
    return Denied(RUN, verdict, delivery, waited=waited)


def says(error: ResumeRefused, *words: str) -> bool:
    """Whether a message has the words, in this order, and does what every message does."""
    text = str(error)
    assert text.startswith("test:/order-17 ")
    assert NOTHING_RAN in text
    assert text.endswith(".")
    assert "  " not in text
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


def of_reason(reason: Reason) -> Denied:
    return Denied(RUN, Refused(reason), Delivery(Intent.ANSWER, holder("b"), (Answer("p1"),)))


KINDS = {
    Reason.IN_PROGRESS: InProgress,
    Reason.CONSUMED: AlreadyConsumed,
    Reason.FAILED: AlreadyConsumed,
    Reason.ABANDONED: Abandoned,
    Reason.STALE_TICKET: StaleTicket,
    Reason.NOT_PARKED: NotParked,
    Reason.SUPERSEDED: Superseded,
}


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_is_an_error_of_its_own_even_when_nothing_more_is_known(
    reason: Reason,
) -> None:
    error = refusal(of_reason(reason), VERBS)
    assert type(error) is KINDS[reason]
    assert (error.reason, error.run, error.pauses) == (reason, RUN, ("p1",))
    assert says(error, NOTHING_RAN)


@pytest.mark.parametrize("reason", list(Reason))
def test_each_message_says_what_to_do_next(reason: Reason) -> None:
    text = str(refusal(of_reason(reason), VERBS)).partition(NOTHING_RAN)[2]
    assert any(verb in text for verb in ("Ask again", "ASK", "GO ON"))


def test_an_error_carries_what_the_verdict_knows(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.lease_left = 12.5
    verdict = ledger.answer("p1", by="b")
    error = refusal(denied(ledger, verdict, "p1", "p2"), VERBS)
    assert (error.claim, error.consumption) == (ledger.record.claim, ledger.entry("p1"))
    assert (error.retry_after, error.pauses) == (12.5, ("p1", "p2"))


# Each message.


def test_in_progress_says_who_holds_the_run_since_when_and_when_to_ask_again(
    ledger: Ledger,
) -> None:
    ledger.answer("p1", "p2", by="ann", actor="Ann")
    ledger.lease_left = 12.34
    verdict = ledger.answer("p1", by="b")
    assert isinstance(verdict, Refused)
    error = refusal(Denied(RUN, verdict), VERBS)
    assert says(
        error,
        "is being served",
        "claim 1001000",
        "process 3 on host-ann",
        "for Ann",
        "since 1970-01-01 00:16:41 UTC",
        "answering p1, p2",
        "Ask again",
        "in 12.3 s",
    )
    assert error.pauses == ()


def test_in_progress_says_no_more_than_it_knows(ledger: Ledger) -> None:
    ledger.start()
    verdict = ledger.answer("p1", by="b")
    text = str(refusal(denied(ledger, verdict), VERBS))
    assert "on host-a since" in text
    assert "answering" not in text


def test_in_progress_after_a_wait_says_that_it_still_is(ledger: Ledger) -> None:
    ledger.answer("p1")
    verdict = ledger.answer("p1", by="b")
    assert says(refusal(denied(ledger, verdict, waited=True), VERBS), "is still being served")


def test_consumed_says_who_answered_when_and_what_became_of_it(ledger: Ledger) -> None:
    ledger.answer("p1", actor="Ann")
    ledger.ends("parked", "p2")
    error = refusal(denied(ledger, ledger.answer("p1"), "p1"), VERBS)
    assert says(
        error,
        "was not waiting",
        "pause p1 was answered by Ann",
        "1970-01-01 00:16:41 UTC",
        "its run parked",
        "ASK",
    )
    assert error.retry_after is None


def test_consumed_while_its_run_goes_on_says_that_its_end_is_not_known(ledger: Ledger) -> None:
    ledger.answer("p1")
    entry = ledger.entry("p1")
    error = refusal(denied(ledger, Refused(Reason.CONSUMED, consumption=entry)), VERBS)
    assert says(error, "UTC, and its run is not known to have ended")
    assert " by " not in str(error)
    assert isinstance(error, AlreadyConsumed)
    assert error.running


@pytest.mark.parametrize(
    ("same", "words"),
    [
        (True, "with the same answer as this, and its run"),
        (False, "with another answer than this, and its run"),
        (None, "UTC, and its run"),
    ],
)
def test_consumed_says_whether_the_answer_was_the_same(
    ledger: Ledger, same: bool | None, words: str
) -> None:
    ledger.answer("p1")
    ledger.ends("finished")
    verdict = Refused(Reason.CONSUMED, consumption=ledger.entry("p1"), same=same)
    error = refusal(denied(ledger, verdict, "p1"), VERBS)
    assert says(error, words, "finished at 1970-01-01 00:16:41 UTC, where it stands at c1")
    assert isinstance(error, AlreadyConsumed)
    assert (error.same_answer, error.running, error.tickets) == (same, False, ())


def test_in_progress_says_whether_the_answer_is_the_one_that_is_served(ledger: Ledger) -> None:
    ledger.answer("p1")
    verdict = ledger.answer("p1", by="b")
    assert isinstance(verdict, Refused)
    for same, words in ((True, "with the same answer as this."), (None, "answering p1.")):
        error = refusal(denied(ledger, replace(verdict, same=same)), VERBS)
        assert says(error, "being served", words)
        assert isinstance(error, InProgress)
        assert error.same_answer is same


def test_released_says_by_whom_and_why(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.dies()
    ledger.releases(actor="Op", detail="a typing error")
    verdict = Refused(Reason.CONSUMED, consumption=ledger.entry("p1"))
    assert says(
        refusal(denied(ledger, verdict), VERBS), "and was released by Op at 19", "(a typing error)"
    )


def test_failed_says_how_and_the_three_ways_out(ledger: Ledger) -> None:
    ledger.answer("p1")
    after = settle(
        ledger.record, ledger.record.token, Outcome("failed", detail="KeyError"), 0.0, True
    )
    assert after is not None
    ledger.record, ledger.lease_left = after, None
    error = refusal(denied(ledger, ledger.answer("p1"), "p1"), VERBS)
    assert says(
        error,
        "failed after it took an answer",
        "pause p1",
        "its run failed (KeyError)",
        "stays consumed",
        "GO ON",
        "same delivery id",
        "release()",
    )
    assert isinstance(error, AlreadyConsumed)
    assert error.failed


def test_abandoned_says_whose_claim_it_was_and_the_three_ways_out(ledger: Ledger) -> None:
    ledger.answer("p1", actor="Ann")
    ledger.dies()
    error = refusal(denied(ledger, ledger.answer("p1"), "p1"), VERBS)
    assert says(
        error,
        "was abandoned by claim 1001000",
        "for Ann",
        "answering p1",
        "is not known",
        "GO ON",
        "release()",
        "on_abandoned='serve'",
    )


def test_abandoned_long_ago_says_which_pause_it_was(ledger: Ledger) -> None:
    ledger.answer("p1", actor="Ann")
    ledger.dies()
    ledger.start()
    ledger.ends("parked", "p2")
    error = refusal(denied(ledger, ledger.answer("p1"), "p1"), VERBS)
    assert says(
        error, "was abandoned by its holder: pause p1 was answered by Ann at", "UTC.", "GO ON"
    )


def test_a_stale_ticket_is_told_from_an_answer_that_nothing_waits_for() -> None:
    assert says(refusal(of_reason(Reason.STALE_TICKET), VERBS), "that this ticket names", "ASK")
    assert says(refusal(of_reason(Reason.NOT_PARKED), VERBS), "nothing is known", "ASK")


@pytest.mark.parametrize("reason", [Reason.STALE_TICKET, Reason.NOT_PARKED, Reason.SUPERSEDED])
def test_what_the_record_does_not_know_is_named_as_the_delivery_named_it(reason: Reason) -> None:
    answers = (Answer("p1"), Answer("p2"))
    delivery = Delivery(Intent.ANSWER, holder("b"), answers)
    assert says(refusal(Denied(RUN, Refused(reason), delivery), VERBS), "(pause p1, p2)")
    empty = Delivery(Intent.CONTINUE, holder("b"))
    assert "(pause" not in str(refusal(Denied(RUN, Refused(reason), empty), VERBS))
    assert "(pause" not in str(refusal(Denied(RUN, Refused(reason)), VERBS))


def test_a_message_that_came_without_an_answer_is_told_that_it_did_its_work(
    ledger: Ledger,
) -> None:
    ledger.go_on(id="m1")
    ledger.ends("parked", "p1")
    error = refusal(denied(ledger, ledger.go_on(id="m1")), VERBS)
    assert isinstance(error, AlreadyConsumed)
    assert says(error, "was not waiting for this delivery any more", "id was used up", "ASK")


def test_superseded_says_how_to_branch_off() -> None:
    assert says(refusal(of_reason(Reason.SUPERSEDED), VERBS), "something else", "ASK", "FORK")


def test_the_words_for_a_framework_of_ones_own_name_the_intents() -> None:
    text = str(refusal(of_reason(Reason.SUPERSEDED), Verbs()))
    assert "intent FORK" in text
    assert "look at the run's state" in text
    assert "intent CONTINUE" in str(refusal(of_reason(Reason.FAILED), Verbs()))


# No answer is ever written down.


MARKERS = st.text("abcdefghijklmnop", min_size=12, max_size=16).map(lambda tail: "marker-" + tail)
SHAPES: list[Any] = [
    lambda marker: marker,
    lambda marker: {"note": [marker]},
    lambda marker: {marker: True},
    lambda marker: marker.encode(),
]


@given(MARKERS, st.sampled_from(SHAPES))
def test_an_answer_never_shows_in_a_message_or_a_record(marker: str, shape: Any) -> None:
    world = World()
    answer = shape(marker)
    texts = []

    def comes(by: str, pause: str | None = "p1", **policy: Any) -> Any:
        result = world.comes(by, world.answers(by, pause, answer), Policy(**policy))
        if isinstance(result, Denied):
            texts.append(str(refusal(result, VERBS)))
        texts.extend(row.text for row in world.rows.values())
        return result

    with pytest.raises(UsageError) as unbound:
        comes("a", None, answers="bound")
    first = comes("a", None)
    comes("b")
    world.clock += 31.0
    comes("b")
    second = comes("b", on_abandoned="serve")
    with pytest.raises(ClaimLost) as stale:
        drive(fence(first), world)
    drive(leave(second, Outcome("failed", detail="KeyError"), applied=True), world)
    comes("c")
    third = comes("c", on_failure="retry")
    drive(leave(third, Outcome("finished"), applied=True), world)
    comes("d")
    comes("d", "p9")

    texts += [str(unbound.value), str(stale.value)]
    assert len([text for text in texts if NOTHING_RAN in text]) == 5
    for text in texts:
        assert marker not in text
        assert marker.encode().hex() not in text
