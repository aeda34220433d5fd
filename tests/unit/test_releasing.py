"""Re-opening by hand what did not finish, and what that leaves as it was."""

from __future__ import annotations

import pytest

from remit_gates._decide import Refused
from remit_gates._model import Outcome, Phase, Reason, Record
from tests.unit.worlds import Ledger, claim, why


def test_releasing_reopens_what_failed(ledger: Ledger) -> None:
    first = claim(ledger.answer("p1"))
    ledger.ends("failed")
    ledger.releases(actor="ops", detail="wrong amount")
    entry = ledger.entry("p1")
    assert (entry.phase, entry.reopened, entry.until) == (Phase.FAILED, "again", ledger.now)
    assert entry.outcome == Outcome(
        "released", "c1", detail="wrong amount", actor="ops", ended=ledger.now + 0.5
    )
    second = claim(ledger.answer("p1", by="b"))
    assert (second.attempt, second.key) == (2, first.key)


def test_releasing_frees_the_claim_of_a_dead_holder(ledger: Ledger) -> None:
    token = claim(ledger.answer("p1")).token
    ledger.dies()
    ledger.releases()
    assert (ledger.record.claim, ledger.record.token) == (None, token)
    assert ledger.entry("p1").phase is Phase.FAILED
    assert claim(ledger.answer("p1", by="b")).token > token


def test_releasing_does_not_touch_a_live_claim(ledger: Ledger) -> None:
    got = claim(ledger.answer("p1"))
    ledger.lease_left = 0.5
    assert ledger.releases() == Refused(Reason.IN_PROGRESS, got, retry_after=0.5)


@pytest.mark.parametrize("lease_left", [None, 0.0, -1.0])
def test_releasing_needs_a_claim_that_is_over(ledger: Ledger, lease_left: float | None) -> None:
    ledger.answer("p1")
    ledger.lease_left = lease_left
    assert isinstance(ledger.releases(), Record)


def test_releasing_does_not_ask_how_long_no_claim_lives(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    ledger.lease_left = 3.0
    assert isinstance(ledger.releases(), Record)


def test_releasing_one_pause_keeps_the_others_closed(ledger: Ledger) -> None:
    ledger.answer("p1", "p2")
    ledger.ends("failed")
    ledger.releases(pause="p1")
    assert ledger.entry("p1").reopened == "again"
    assert ledger.entry("p2").reopened is None
    assert why(ledger.answer("p2")) is Reason.FAILED


def test_releasing_does_not_reopen_what_was_finished(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("finished")
    before = ledger.record
    assert ledger.releases() == before


def test_releasing_twice_changes_nothing_more(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.ends("failed")
    once = ledger.releases(actor="ops")
    ledger.now += 1
    assert ledger.releases(actor="someone else") == once


def test_releasing_a_run_that_nobody_knows_changes_nothing(ledger: Ledger) -> None:
    assert ledger.releases() == Record()


def test_releasing_one_pause_of_a_dead_holder_leaves_the_other_to_whoever_goes_on(
    ledger: Ledger,
) -> None:
    got = claim(ledger.answer("p1", "p2"))
    ledger.dies()
    ledger.releases(pause="p1")
    assert (ledger.record.claim, ledger.record.last) == (None, got.token)
    assert [entry.pause for entry in ledger.record.unfinished] == ["p2"]
    assert why(ledger.answer("p2")) is Reason.ABANDONED
    assert claim(ledger.go_on()).pauses == ("p2",)
    ledger.ends("parked", "p1")
    assert claim(ledger.answer("p1")).attempt == 2


def test_releasing_a_claim_without_pauses_frees_the_run(ledger: Ledger) -> None:
    got = claim(ledger.start(actor="Ann"))
    ledger.dies()
    ledger.releases(actor="ops", detail="stuck")
    (release,) = ledger.record.earlier
    assert (release.pause, release.token, release.actor) == ("", got.token, "Ann")
    assert release.outcome == Outcome("released", detail="stuck", actor="ops")
    freed = Record(token=got.token, served=got.token, left=got.key, earlier=(release,))
    assert ledger.record == freed


def test_a_release_of_a_pause_that_is_not_closed_changes_nothing(ledger: Ledger) -> None:
    ledger.answer("p1")
    ledger.dies()
    before = ledger.record
    assert ledger.releases(pause="p2") == before
