"""The keeper: a claim lives as long as its run, and its end is written down at last."""

from __future__ import annotations

import copy
import logging
import os
from typing import Any

import pytest

from remit_gates import Abandoned, ClaimLost, Gate, InProgress, Intent, Policy, StoreUnavailable
from remit_gates._claim import ActiveClaim
from remit_gates._drive import drive
from remit_gates._keeper import GIVE_UP
from remit_gates._model import Phase, RunKey
from remit_gates._port import StorePort
from tests.unit.staged import Stage


RUN = RunKey("gate", "", "r")
LEASE = Policy().lease


@pytest.fixture
def gate(stage: Stage) -> Gate:
    return Gate(stage.store)


def phase(stage: Stage) -> Phase | None:
    entry = stage.store.read(RUN).record.consumption("p")
    return None if entry is None else entry.phase


def test_a_claim_is_renewed_every_third_of_its_lease(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p"):
        stage.store.calls.clear()
        stage.passes(LEASE)
        assert stage.store.calls == ["renew"] * 3
        stage.passes(10 * LEASE)
        left = stage.store.read(RUN).lease_left
        assert left is not None
        assert left > LEASE / 2


def test_nothing_is_renewed_once_the_run_has_ended(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p"):
        pass
    assert len(stage.heartbeat) == 0


def test_a_short_lease_beside_a_long_one_is_kept(stage: Stage, gate: Gate) -> None:
    brief = Gate(stage.store, policy=Policy(lease=0.3))
    with gate.passage("long", "p"), brief.passage("short", "p") as claim:
        stage.passes(LEASE)
        assert claim.provably_alive
        with pytest.raises(InProgress), brief.passage("short", "p"):
            pass


def test_a_renewal_that_fails_is_repeated_until_it_lands(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        with stage.store.down("renew"):
            stage.passes(LEASE * 0.7)
        stage.passes(LEASE / 9)
        assert stage.store.calls.count("renew") == 5  # at 10 s, then every 3.3 s
        assert stage.kinds == ["granted", *["renewal_failed"] * 4]
        stage.passes(LEASE / 2)
        assert claim.provably_alive


def test_a_lease_that_lapsed_during_an_outage_is_taken_up_again(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        with stage.store.down("renew"):
            stage.passes(2 * LEASE)
        assert not claim.provably_alive
        stage.passes(LEASE / 9)
        assert claim.provably_alive
        with pytest.raises(InProgress), gate.passage("r", "p"):
            pass
    assert phase(stage) is Phase.SETTLED


def test_a_holder_that_was_replaced_is_told_so_once(stage: Stage, gate: Gate) -> None:
    serving = Gate(stage.store, policy=Policy(on_abandoned="serve"))
    with gate.passage("r", "p") as stale:
        stage.stalls(LEASE + 1)
        with serving.passage("r", "p") as successor:
            assert (successor.attempt, stale.attempt) == (2, 1)
            assert successor.token > stale.token
            assert successor.idempotency_key == stale.idempotency_key
            stage.passes(LEASE)
            assert stage.kinds.count("lost") == 1
            assert not stale.provably_alive
            with pytest.raises(ClaimLost, match="taken its place"):
                stale.check()
            successor.check()
    # The stale holder left last, and that changed nothing.
    assert stage.kinds.count("lost") == 1
    assert phase(stage) is Phase.SETTLED
    assert stage.store.read(RUN).record.served == successor.token


def test_a_check_within_the_lease_asks_nobody(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        stage.store.calls.clear()
        claim.check()
        assert stage.store.calls == []


def test_a_check_after_a_stall_renews_first(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        stage.stalls(LEASE + 1)
        claim.check()
        assert claim.provably_alive


def test_a_check_after_a_stall_fails_when_the_store_is_down(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        stage.stalls(LEASE + 1)
        with stage.store.down(), pytest.raises(ClaimLost, match="cannot renew it") as caught:
            claim.check()
        assert isinstance(caught.value.__cause__, StoreUnavailable)


def test_a_check_after_the_end_fails(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        pass
    with pytest.raises(ClaimLost, match="has ended"):
        claim.check()


def test_an_end_that_cannot_be_written_is_written_later(
    stage: Stage, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    with gate.passage("r", "p"):
        stage.store.failing = fail
    assert stage.kinds == ["granted", "unsettled"]
    (record,) = (entry for entry in caplog.records if entry.levelno == logging.ERROR)
    assert "unsettled" in record.getMessage()
    stage.passes(LEASE)
    stage.store.failing = lambda name: None
    stage.passes(LEASE / 9)
    assert stage.kinds == ["granted", "unsettled", "settled"]
    assert phase(stage) is Phase.SETTLED
    assert len(stage.heartbeat) == 0


def test_an_end_that_cannot_be_written_is_given_up_in_the_end(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p"):
        stage.store.failing = fail
    stage.passes(GIVE_UP - LEASE)
    assert len(stage.heartbeat) == 1
    stage.passes(2 * LEASE)
    assert len(stage.heartbeat) == 0
    assert stage.kinds == ["granted", "unsettled", "lost"]
    stage.store.failing = lambda name: None
    # The lease has run out long ago, so the run is shut, and says why, but not for ever.
    with pytest.raises(Abandoned), gate.passage("r", "p"):
        pass
    with gate.passage("r", intent=Intent.CONTINUE) as claim:
        assert (claim.attempt, claim.pauses) == (2, ("p",))


def test_an_interrupt_from_the_keyboard_while_the_end_is_written(stage: Stage, gate: Gate) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), gate.passage("r", "p"):
        stage.store.failing = interrupt
    stage.store.failing = lambda name: None
    stage.passes(LEASE / 9)
    assert phase(stage) is Phase.SETTLED


def test_an_end_that_landed_although_it_was_interrupted_is_not_called_lost(
    stage: Stage, gate: Gate
) -> None:
    swap = stage.store.swap

    def landed(*args: Any) -> Any:
        swap(*args)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), gate.passage("r", "p"):
        vars(stage.store)["swap"] = landed
    del vars(stage.store)["swap"]
    assert phase(stage) is Phase.SETTLED
    stage.passes(LEASE / 9)
    assert stage.kinds == ["granted", "unsettled", "settled"]


def test_an_end_is_written_once(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        drive(gate._keeper.dismiss(claim, None), StorePort(gate.store))
        stage.store.calls.clear()
    assert stage.store.calls == []
    assert stage.kinds == ["granted", "withdrawn"]


def test_the_end_of_a_withdrawn_claim_leaves_no_trace_but_its_token(
    stage: Stage, gate: Gate
) -> None:
    with gate.passage("r", "p") as claim:
        drive(gate._keeper.dismiss(claim, None), StorePort(gate.store))
    with gate.passage("r", "p") as again:
        assert again.attempt == 1
        assert again.token > claim.token


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_holds_no_claim_of_its_parents(stage: Stage, gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        pid = os.fork()
        if pid == 0:
            os._exit(child(claim, gate, stage))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert claim.provably_alive
        stage.passes(LEASE)
        claim.check()
    assert phase(stage) is Phase.SETTLED


def child(claim: ActiveClaim, gate: Gate, stage: Stage) -> int:
    """What a child can do with a claim of its parent's: nothing. Returns its exit code."""
    stage.store.calls.clear()
    if claim.provably_alive:
        return 1
    try:
        claim.check()
    except ClaimLost:
        pass
    else:
        return 2
    drive(gate._keeper.dismiss(claim, None), StorePort(gate.store))
    return 3 if stage.store.calls else 0


def test_a_claim_is_itself_in_a_copied_config(gate: Gate) -> None:
    with gate.passage("r", "p") as claim:
        assert copy.copy(claim) is claim
        assert copy.deepcopy({"claim": [claim]})["claim"][0] is claim


def test_what_a_claim_shows_of_itself(gate: Gate) -> None:
    with gate.passage("r", "p", "secret", delivery="d-1", actor="ann") as claim:
        assert (claim.run, claim.pauses, claim.attempt) == (RUN, ("p",), 1)
        assert (claim.delivery, claim.actor) == ("d-1", "ann")
        assert repr(claim) == f"<claim {claim.token} on gate:/r>"


def fail(name: str) -> None:
    raise StoreUnavailable("down.")
