"""`Gate` and `AsyncGate`: a block that one delivery enters, and every other one does not.

Each test that says what both do is run with both, through one face.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from remit_gates import (
    Abandoned,
    ActiveClaim,
    AlreadyConsumed,
    AsyncGate,
    ClaimLost,
    Event,
    Gate,
    InProgress,
    Intent,
    Policy,
    ResumeRefused,
    RunKey,
    StoreMisconfigured,
    StoreUnavailable,
    UsageError,
    current_claim,
    observed,
    release,
)
from tests.unit.staged import Slow, Stage, Watched


class Face:
    """A gate of either colour, as one for async code."""

    def __init__(self, colour: str, store: Any, **options: Any) -> None:
        self.gate = AsyncGate(store, **options) if colour == "async" else Gate(store, **options)

    @asynccontextmanager
    async def passage(self, *args: Any, **kwargs: Any) -> AsyncIterator[ActiveClaim]:
        if isinstance(self.gate, AsyncGate):
            async with self.gate.passage(*args, **kwargs) as claim:
                yield claim
        else:
            with self.gate.passage(*args, **kwargs) as claim:
                yield claim

    async def release(self, *args: Any, **kwargs: Any) -> bool:
        if isinstance(self.gate, AsyncGate):
            return await self.gate.release(*args, **kwargs)
        return self.gate.release(*args, **kwargs)

    async def served(self, *args: Any, **kwargs: Any) -> ActiveClaim:
        """A delivery that must be served, to its end."""
        async with self.passage(*args, **kwargs) as claim:
            pass
        return claim

    async def refused(self, *args: Any, **kwargs: Any) -> ResumeRefused:
        """The refusal of a delivery that must not be."""
        with pytest.raises(ResumeRefused) as caught:
            async with self.passage(*args, **kwargs):
                pytest.fail("the block was entered")
        return caught.value

    async def fails(self, *args: Any, **kwargs: Any) -> None:
        """A delivery that is served, and whose block raises."""
        with pytest.raises(LookupError, match="in the block"):
            async with self.passage(*args, **kwargs):
                raise LookupError("in the block")


@pytest.fixture
def store(stage: Stage) -> Watched:
    return stage.store


@pytest.fixture(params=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def gate(colour: str, store: Watched) -> Face:
    return Face(colour, store)


@pytest.mark.asyncio
class TestBothColours:
    async def test_one_is_served_and_the_next_refused(self, gate: Face) -> None:
        claim = await gate.served("r", "p", "yes", actor="ann")
        refused = await gate.refused("r", "p", "no")
        assert isinstance(refused, AlreadyConsumed)
        assert (refused.failed, refused.same_answer, refused.retry_after) == (False, False, None)
        assert refused.outcome is not None
        assert refused.outcome.state == "finished"
        assert refused.consumption is not None
        assert (refused.consumption.actor, refused.consumption.token) == ("ann", claim.token)
        assert "pause p was answered by ann" in str(refused)

    async def test_the_same_answer_is_told_from_another(self, gate: Face) -> None:
        await gate.served("r", "p", {"amount": 10})
        same = await gate.refused("r", "p", {"amount": 10})
        other = await gate.refused("r", "p", {"amount": 11})
        assert isinstance(same, AlreadyConsumed)
        assert isinstance(other, AlreadyConsumed)
        assert (same.same_answer, other.same_answer) == (True, False)

    async def test_a_live_holder_is_named(self, gate: Face) -> None:
        async with gate.passage("r", "p", actor="ann"):
            refused = await gate.refused("r", "p")
        assert isinstance(refused, InProgress)
        assert refused.retry_after is not None
        assert 0 < refused.retry_after <= Policy().lease
        assert f"held by process {os.getpid()}" in str(refused)
        assert "for ann" in str(refused)

    async def test_a_live_holder_s_answer_is_compared(self, gate: Face) -> None:
        async with gate.passage("r", "p", "yes"):
            for pause, answer, same in (("p", "yes", True), ("p", "no", False), ("q", "yes", None)):
                refused = await gate.refused("r", pause, answer)
                assert isinstance(refused, InProgress)
                assert refused.same_answer is same

    async def test_a_refused_delivery_sends_the_store_a_read_and_nothing_else(
        self, gate: Face, store: Watched
    ) -> None:
        async with gate.passage("r", "p"):
            store.calls.clear()
            await gate.refused("r", "p")
            assert store.calls == ["read"]
        store.calls.clear()
        await gate.refused("r", "p")
        assert store.calls == ["read"]

    async def test_a_served_delivery_costs_three_calls(self, gate: Face, store: Watched) -> None:
        await gate.served("r", "p")
        assert store.calls == ["read", "swap", "swap"]

    async def test_a_block_that_raises_keeps_its_answer(self, gate: Face) -> None:
        await gate.fails("r", "p", delivery="d-1")
        refused = await gate.refused("r", "p", delivery="d-2")
        assert isinstance(refused, AlreadyConsumed)
        assert refused.failed
        assert refused.outcome is not None
        assert refused.outcome.detail == "LookupError"
        assert "in the block" not in str(refused)

    async def test_after_a_failure_the_run_can_be_continued(self, gate: Face) -> None:
        await gate.fails("r", "p")
        claim = await gate.served("r")
        assert (claim.pauses, claim.attempt) == (("p",), 2)
        assert not (await gate.refused("r", "p")).retry_after

    async def test_after_a_failure_the_same_delivery_is_served_again(self, gate: Face) -> None:
        await gate.fails("r", "p", delivery="d-1")
        claim = await gate.served("r", "p", delivery="d-1")
        assert (claim.attempt, claim.delivery) == (2, "d-1")

    async def test_after_a_failure_a_released_pause_takes_another_answer(self, gate: Face) -> None:
        await gate.fails("r", "p", "yes")
        assert await gate.release("r", actor="bob", reason="typed wrong")
        assert not await gate.release("r")
        claim = await gate.served("r", "p", "no")
        assert claim.attempt == 2

    async def test_retry_serves_another_delivery_after_a_failure(
        self, colour: str, store: Watched
    ) -> None:
        gate = Face(colour, store, policy=Policy(on_failure="retry"))
        await gate.fails("r", "p")
        assert (await gate.served("r", "p")).attempt == 2
        assert isinstance(await gate.refused("r", "p"), AlreadyConsumed)

    async def test_a_live_claim_is_not_released(self, gate: Face) -> None:
        async with gate.passage("r", "p"):
            with pytest.raises(InProgress):
                await gate.release("r")
        assert isinstance(await gate.refused("r", "p"), AlreadyConsumed)

    async def test_a_run_that_parks_again_takes_its_next_answer(self, gate: Face) -> None:
        async with gate.passage("r", "first") as claim:
            claim.parked("second", position="step 2")
        refused = await gate.refused("r", "first")
        assert isinstance(refused, AlreadyConsumed)
        assert refused.outcome is not None
        assert (refused.outcome.state, refused.outcome.position) == ("parked", "step 2")
        assert refused.outcome.waiting == ("second",)
        await gate.served("r", "second")

    async def test_a_pause_of_the_same_name_is_a_question_of_its_own(self, gate: Face) -> None:
        async with gate.passage("r", "p", delivery="d-1") as first:
            first.parked("p")
        async with gate.passage("r", "p", delivery="d-2") as second:
            assert second.attempt == 1
            assert second.idempotency_key != first.idempotency_key
        # The first message, delivered once more, must not answer the second question.
        assert isinstance(await gate.refused("r", "p", delivery="d-1"), AlreadyConsumed)

    async def test_a_delivery_id_answers_one_pause(self, gate: Face) -> None:
        async with gate.passage("r", "first", delivery="d-1") as claim:
            claim.parked("second")
        assert isinstance(await gate.refused("r", "second", delivery="d-1"), AlreadyConsumed)
        await gate.served("r", "second", delivery="d-2")

    async def test_runs_do_not_stand_in_each_others_way(self, gate: Face) -> None:
        async with gate.passage("r1", "p") as one, gate.passage("r2", "p") as two:
            assert one.idempotency_key != two.idempotency_key

    async def test_namespaces_and_frameworks_are_apart(self, colour: str, store: Watched) -> None:
        await Face(colour, store).served("r", "p")
        await Face(colour, store, namespace="other").served("r", "p")
        await Face(colour, store, framework="other").served("r", "p")

    async def test_one_start_at_a_time(self, gate: Face) -> None:
        async with gate.passage("r", intent=Intent.START):
            assert isinstance(await gate.refused("r", intent=Intent.START), InProgress)
            assert isinstance(await gate.refused("r", "p"), InProgress)
        await gate.served("r", intent=Intent.START)

    async def test_intent_and_pause_go_together(self, gate: Face, store: Watched) -> None:
        for pause, intent, said in (
            (None, Intent.ANSWER, "needs pause="),
            ("p", Intent.CONTINUE, "takes no pause="),
            ("p", Intent.START, "takes no pause="),
        ):
            with pytest.raises(UsageError, match=said):
                async with gate.passage("r", pause, intent=intent):
                    pytest.fail("the block was entered")
        assert store.calls == []

    async def test_when_the_store_is_down_nothing_is_served(
        self, gate: Face, store: Watched
    ) -> None:
        with store.down(), pytest.raises(StoreUnavailable, match="Deliver again") as caught:
            async with gate.passage("r", "p"):
                pytest.fail("the block was entered")
        assert caught.value.http_status == 503
        assert caught.value.definite
        await gate.served("r", "p")

    async def test_when_the_store_is_down_it_serves_if_it_must(
        self, colour: str, store: Watched
    ) -> None:
        gate = Face(colour, store, policy=Policy(on_store_error="serve"))
        events: list[Event] = []
        with observed(events.append), store.down():
            async with gate.passage("r", "p") as claim:
                assert not claim.guarded
                assert claim.provably_alive
                assert claim.token == 0
                claim.check()
                store.calls.clear()
            assert store.calls == []
        assert [event.kind for event in events] == ["served_ungated"]
        # Its key is the one that a guarded attempt would have, so the outside still knows.
        async with gate.passage("r", "p") as guarded:
            assert guarded.guarded
            assert guarded.idempotency_key == claim.idempotency_key

    async def test_when_the_store_is_down_at_the_end_the_block_has_ended_as_it_has(
        self, gate: Face, stage: Stage
    ) -> None:
        with ExitStack() as outage:
            async with gate.passage("r", "p"):
                outage.enter_context(stage.store.down())
            with pytest.raises(StoreUnavailable):
                await gate.served("s", "p")
        assert stage.kinds == ["granted", "unsettled", "claim_failed"]
        assert isinstance(await gate.refused("r", "p"), InProgress)
        stage.passes(Policy().lease / 9)
        assert isinstance(await gate.refused("r", "p"), AlreadyConsumed)

    async def test_a_block_that_raises_raises_its_own_error_when_the_store_is_down(
        self, gate: Face, stage: Stage
    ) -> None:
        with stage.store.down("swap"):
            stage.store.failing = after(1, stage.store.failing)
            await gate.fails("r", "p")
        assert stage.kinds == ["granted", "unsettled"]

    async def test_the_claim_is_at_hand_in_the_block_and_gone_after_it(self, gate: Face) -> None:
        assert current_claim() is None
        async with gate.passage("outer", "p") as outer:
            assert current_claim() is outer
            async with gate.passage("inner", "p") as inner:
                assert current_claim() is inner
            assert current_claim() is outer
            await gate.fails("failing", "p")
            assert current_claim() is outer
        assert current_claim() is None

    async def test_an_abandoned_run_is_shut_until_somebody_decides(
        self, gate: Face, stage: Stage
    ) -> None:
        holder = gate.passage("r", "p")
        await holder.__aenter__()
        stage.stalls(Policy().lease + 1)
        refused = await gate.refused("r", "p")
        assert isinstance(refused, Abandoned)
        assert "release()" in str(refused)
        claim = await gate.served("r")
        assert claim.attempt == 2
        await holder.__aexit__(None, None, None)
        assert stage.kinds[-1] == "lost"


def after(calls: int, failing: Any) -> Any:
    """`failing`, from the call on that comes after so many."""
    left = iter(range(calls))

    def fail(name: str) -> None:
        if name != "swap" or next(left, None) is None:
            failing(name)

    return fail


def test_a_block_may_be_left_in_another_context_than_it_was_entered_in(store: Watched) -> None:
    passage = Gate(store).passage("r", "p")
    claim = contextvars.copy_context().run(passage.__enter__)
    contextvars.copy_context().run(passage.__exit__, None, None, None)
    assert not claim.provably_alive
    assert current_claim() is None


def test_a_thread_started_in_the_block_has_no_claim_unless_it_is_handed_the_context(
    store: Watched,
) -> None:
    with Gate(store).passage("r", "p") as claim, ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_claim).result() is None
        assert pool.submit(contextvars.copy_context().run, current_claim).result() is claim


def test_release_needs_no_gate(store: Watched) -> None:
    gate = Gate(store, framework="jobs", namespace="eu")
    with pytest.raises(LookupError), gate.passage("r", "p"):
        raise LookupError
    assert not release(store, "r")
    assert not release(store, "r", framework="jobs", namespace="eu", pause="another")
    assert release(store, "r", framework="jobs", namespace="eu", pause="p")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_in_the_block_leaves_the_claim_to_the_parent(stage: Stage) -> None:
    passage = Gate(stage.store).passage("r", "p")
    claim = passage.__enter__()
    pid = os.fork()
    if pid == 0:
        stage.store.calls.clear()
        with suppress(ClaimLost):
            claim.check()
            os._exit(1)
        passage.__exit__(None, None, None)
        os._exit(2 if stage.store.calls else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert claim.provably_alive
    passage.__exit__(None, None, None)
    assert stage.kinds == ["granted", "settled"]


def test_a_memory_store_serves_nobody_in_a_forked_child(store: Watched) -> None:
    gate = Gate(store)
    with gate.passage("r", "p"):
        pass
    pid = os.fork()
    if pid == 0:
        try:
            with gate.passage("r", "p"):
                os._exit(1)
        except StoreMisconfigured:
            os._exit(0)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.asyncio
async def test_a_cancelled_block_is_failed(stage: Stage) -> None:
    gate = AsyncGate(stage.store)
    entered = asyncio.Event()

    async def deliver() -> None:
        async with gate.passage("r", "p"):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(deliver())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.kinds == ["granted", "failed"]
    refused = await Face("async", stage.store).refused("r", "p")
    assert isinstance(refused, AlreadyConsumed)
    assert refused.failed


@pytest.mark.asyncio
async def test_a_delivery_cancelled_while_its_claim_is_on_its_way_leaves_none(
    stage: Stage,
) -> None:
    slow = Slow(stage.store, inline=True)
    slow.stop()
    gate = AsyncGate(slow)

    async def deliver() -> None:
        async with gate.passage("r", "p"):
            pytest.fail("the block was entered")

    task = asyncio.create_task(deliver())
    await slow.asked.wait()
    task.cancel()
    slow.through.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.store.read(RunKey("gate", "", "r")).record.claim is None
    assert (await Face("async", stage.store).served("r", "p")).attempt == 1


@pytest.mark.asyncio
async def test_a_delivery_cancelled_while_its_end_is_on_its_way_is_settled(stage: Stage) -> None:
    slow = Slow(stage.store, inline=True)
    gate = AsyncGate(slow)

    async def deliver() -> None:
        async with gate.passage("r", "p"):
            slow.stop()
            stopped.set()

    stopped = asyncio.Event()
    task = asyncio.create_task(deliver())
    await stopped.wait()
    await slow.asked.wait()
    task.cancel()
    slow.through.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    stage.passes(Policy().lease / 9)
    assert stage.kinds == ["granted", "unsettled", "settled"]
    assert isinstance(await Face("async", stage.store).refused("r", "p"), AlreadyConsumed)


@pytest.mark.asyncio
async def test_an_async_check_does_not_block_the_loop(stage: Stage) -> None:
    async with AsyncGate(stage.store).passage("r", "p") as claim:
        stage.store.calls.clear()
        await claim.acheck()
        assert stage.store.calls == []
        stage.stalls(Policy().lease + 1)
        await claim.acheck()
        assert stage.store.calls[0] == "renew"
        stage.stalls(Policy().lease + 1)
        with stage.store.down(), pytest.raises(ClaimLost):
            await claim.acheck()
