"""Until CrewAI has given its pause up, a failure leaves it as if nobody had answered;
afterwards the answer stays consumed."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from functools import partial
from typing import Any

import pytest
import wrapt
from crewai.flow.persistence import SQLiteFlowPersistence

from remit_gates import Policy, observed
from remit_gates._drive import drive
from remit_gates._keeper import Keeper
from remit_gates._port import StorePort
from remit_gates.crewai import gate, release
from remit_gates.errors import (
    AlreadyConsumed,
    ClaimLost,
    GateNotEngaged,
    InProgress,
    StoreUnavailable,
    UsageError,
)
from tests.adapters.flows import Judging, Plain, Twice, counting, kept, parked
from tests.adapters.racing import Background, outcome
from tests.adapters.recorded import Recorded
from tests.journal import Journal


def down(*_: Any) -> None:
    raise OSError("the disk is full")


def test_a_model_that_fails_leaves_the_pause_answerable(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Judging, persistence)
    flow = Judging.from_pending(run, persistence)

    with pytest.raises(RuntimeError, match="the model is down"):
        flow.resume("?")

    assert not kept(path, run).record.consumptions
    # By the same instance or another, with the same answer or another.
    assert Judging.from_pending(run, persistence).resume("rejected") == "discarded"
    with pytest.raises(AlreadyConsumed):
        flow.resume("approved")
    assert diary.steps(run) == ["draft", "model", "model", "discard"]


def test_the_same_instance_may_try_again(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Judging, persistence)
    flow = Judging.from_pending(run, persistence)
    with pytest.raises(RuntimeError, match="the model is down"):
        flow.resume("?", remit_delivery="m1")
    assert flow.resume("approved", remit_delivery="m1") == "published"


@pytest.mark.parametrize("call", ["save_state", "clear_pending"])
def test_a_write_that_fails_before_the_commit(call: str, path: str, diary: Journal) -> None:
    inner = Recorded(path)
    persistence = gate(inner)
    cls = counting(persistence)
    run = parked(cls, persistence)
    flow = cls.from_pending(run, persistence)
    inner.before(call, down)

    with pytest.raises((OSError, RuntimeError), match="disk is full"):
        flow.resume("seven")

    assert not kept(path, run).record.consumptions
    assert cls.from_pending(run, persistence).resume("eight") == "counted:eight"
    assert diary.steps(run) == ["ask", "answer"]


def cancel(flow: Any, words: str, step: str, diary: Journal) -> None:
    """Resume `flow` with `words`, and cancel that in `step`."""

    async def go() -> None:
        diary.hold(flow.flow_id, step)
        task = asyncio.create_task(flow.resume_async(words))
        await asyncio.to_thread(diary.await_step, flow.flow_id, step)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        diary.let_go(flow.flow_id, step)

    asyncio.run(go())


def test_cancelled_before_the_commit(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Judging, persistence)
    cancel(Judging.from_pending(run, persistence), "approved", "model", diary)
    assert not kept(path, run).record.consumptions
    assert Judging.from_pending(run, persistence).resume("rejected") == "discarded"


def test_cancelled_after_the_commit(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    cancel(Plain.from_pending(run, persistence), "yes", "publish", diary)
    with pytest.raises(AlreadyConsumed) as late:
        Plain.from_pending(run, persistence)
    assert late.value.failed


@pytest.mark.parametrize("policy", [Policy(), Policy(on_failure="retry")], ids=["hold", "retry"])
def test_a_listener_that_fails_leaves_the_answer_consumed(
    policy: Policy, path: str, diary: Journal
) -> None:
    """Whatever the policy: CrewAI has given the pause up, and another try is a new run."""
    persistence = gate(SQLiteFlowPersistence(path), policy=policy)
    run = parked(Plain, persistence)
    flow, early = (Plain.from_pending(run, persistence) for _ in range(2))
    with pytest.raises(RuntimeError, match="the listener failed"):
        flow.resume("fail", remit_delivery="m1")

    for late in (
        partial(early.resume, "yes"),
        partial(early.resume, "fail", remit_delivery="m1"),
        partial(flow.resume, "yes"),
        partial(Plain.from_pending, run, persistence),
    ):
        error = outcome(late)
        assert isinstance(error, AlreadyConsumed)
        assert isinstance(error, ValueError)
        assert error.failed
        assert "RuntimeError" in str(error)
        assert "kickoff(inputs={'id': flow_id})" in str(error)
    assert diary.steps(run).count("publish") == 1


def test_the_second_pause_cannot_be_saved(path: str, diary: Journal) -> None:
    """The first answer is spent by then."""
    inner = Recorded(path)
    persistence = gate(inner)
    run = parked(Twice, persistence)
    flow = Twice.from_pending(run, persistence)
    inner.before("save_pending", down)
    with pytest.raises(OSError, match="disk is full"):
        flow.resume("yes")
    with pytest.raises(AlreadyConsumed) as late:
        Twice.from_pending(run, persistence)
    assert late.value.failed


def test_released_only_an_open_instance_can_go_on(
    path: str, diary: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    flow, early, other = (Plain.from_pending(run, persistence) for _ in range(3))
    with pytest.raises(RuntimeError, match="the listener failed"):
        flow.resume("fail")

    with caplog.at_level(logging.WARNING, "remit_gates"):
        assert release(persistence, run, actor="bob", reason="mended")
    assert "CrewAI's own row of the pause is gone" in caplog.text

    with pytest.raises(ValueError, match="CrewAI's own row of the pause is gone"):
        Plain.from_pending(run, persistence)
    assert early.resume("yes") == "published:yes"
    with pytest.raises(AlreadyConsumed):
        other.resume("yes")
    assert not release(persistence, run)


def test_release_is_refused_while_a_holder_lives(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    flow = Plain.from_pending(run, persistence)
    diary.hold(run, "publish")
    winner = Background(partial(flow.resume, "yes"))
    diary.await_step(run, "publish")
    error = outcome(partial(release, flow, run))
    diary.let_go(run, "publish")
    assert winner.result() == "published:yes"
    assert isinstance(error, InProgress)
    with pytest.raises(UsageError, match="gated persistence"):
        release(SQLiteFlowPersistence(path), run)


def replace_holder(persistence: Any) -> None:
    """Have another delivery hold the run that the caller is in, as if its holder had stood still past its lease."""
    from remit_gates._liveness import mint
    from remit_gates._model import Delivery, Intent
    from remit_gates.crewai._run import entered

    entry = entered.get()
    assert entry is not None
    passage = entry.claim.passage
    store = persistence._self_binding.store
    snap = store.read(passage.run)
    # Its lease has run out, by the store's clock and by its own.
    store.swap(passage.run, snap.version, snap.record, 0.0)
    passage.deadline = 0.0
    keeper = Keeper(store, Policy())
    intruder = mint()
    taken = drive(
        keeper.admit(passage.run, intruder, lambda *_: Delivery(Intent.CONTINUE, intruder)),
        StorePort(store),
    )
    assert taken.passage.replaced == passage.claim  # type: ignore[union-attr]
    taken._left = True  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("after", "written"),
    [("_finalize_human_feedback", []), ("_persist_method_completion", ["save_state"])],
    ids=["before its state is written", "before its pause is cleared"],
)
def test_a_holder_that_was_replaced_runs_no_listener(
    after: str, written: list[str], path: str, diary: Journal
) -> None:
    inner = Recorded(path)
    persistence = gate(inner)
    cls = counting(persistence)
    run = parked(cls, persistence)
    flow = cls.from_pending(run, persistence)
    original = getattr(flow, after)

    def then(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        replace_holder(persistence)
        return result

    object.__setattr__(flow, after, then)
    before = len(inner.calls)

    with pytest.raises(ClaimLost):
        flow.resume("seven")

    assert diary.steps(run) == ["ask"]
    assert [name for name, _ in inner.calls[before:] if name != "load_pending"] == written
    assert inner.load_pending_feedback(run) is not None


def test_a_gate_whose_hook_is_gone_serves_nobody(
    path: str, diary: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crewai.flow.runtime import Flow

    persistence = gate(SQLiteFlowPersistence(path))
    run = parked(Plain, persistence)
    flow = Plain.from_pending(run, persistence)
    bare = Flow.resume_async.__wrapped__
    monkeypatch.setattr(Flow, "resume_async", bare)

    with pytest.raises(GateNotEngaged):
        flow.resume("yes")

    assert diary.steps(run) == ["draft"]
    monkeypatch.undo()
    assert Plain.from_pending(run, persistence).resume("yes") == "published:yes"


def test_a_wrapper_round_the_gate_serves_nobody(path: str, diary: Journal) -> None:
    wrapped: Any = wrapt.ObjectProxy(gate(SQLiteFlowPersistence(path)))
    run = parked(Plain, wrapped)
    with pytest.raises(GateNotEngaged, match="must be outermost"):
        Plain.from_pending(run, wrapped).resume("yes")
    assert diary.steps(run) == ["draft"]


@pytest.mark.parametrize("by_method", [False, True], ids=["class", "method"])
def test_an_ungated_instance_of_a_gated_class_serves_nobody(
    by_method: bool, path: str, diary: Journal
) -> None:
    bare = SQLiteFlowPersistence(path)
    cls = counting(gate(bare), by_method=by_method)
    run = parked(cls, bare)
    with pytest.raises(GateNotEngaged, match="from_pending"):
        cls.from_pending(run, bare).resume("7")
    assert diary.steps(run) == ["ask"]
    assert cls.from_pending(run, gate(bare)).resume("7") == "counted:7"


def test_the_store_is_down(path: str, diary: Journal, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/no/such/folder.db"
    run = parked(Plain, SQLiteFlowPersistence(path))
    shut = gate(SQLiteFlowPersistence(path), store=url)
    flow = Plain.from_pending(run, shut)
    with pytest.raises(StoreUnavailable):
        flow.resume("yes")
    assert diary.steps(run) == ["draft"]
    careless = gate(SQLiteFlowPersistence(path), store=url, policy=Policy(on_store_error="serve"))
    assert Plain.from_pending(run, careless).resume("yes") == "published:yes"
    # What became of it, nobody can say.
    with pytest.raises(ValueError, match="No pending feedback found"):
        Plain.from_pending(run, careless)


def test_what_is_no_persistence_is_refused(path: str) -> None:
    bare = SQLiteFlowPersistence(path)
    gated = gate(bare)
    assert gate(gated) is gated
    with pytest.raises(UsageError, match=r"gated already.*policy="):
        gate(gated, policy=Policy(lease=5.0))
    assert isinstance(gated, SQLiteFlowPersistence)
    with pytest.raises(UsageError, match="not str"):
        gate("flows.db")
    from crewai.flow.persistence import FlowPersistence

    class Foreign(FlowPersistence):
        def init_db(self) -> None: ...
        def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None: ...
        def load_state(self, flow_uuid: str) -> Any: ...

    with pytest.raises(UsageError, match="Foreign"):
        gate(Foreign())
    gate(Foreign(), store="memory://")


def test_a_gated_persistence_is_copied_and_pickled(path: str, diary: Journal) -> None:
    gated = gate(SQLiteFlowPersistence(path), policy=Policy(lease=5.0), namespace="n")
    run = parked(Plain, gated)
    for made in (copy.copy(gated), copy.deepcopy(gated), pickle.loads(pickle.dumps(gated))):
        assert type(made) is type(gated)
        assert made._self_binding.policy == Policy(lease=5.0)
        assert made._self_binding.namespace == "n"
    assert Plain.from_pending(run, made).resume("yes") == "published:yes"
    with pytest.raises(AlreadyConsumed):
        Plain.from_pending(run, gated)
    held = gate(SQLiteFlowPersistence(path), store=gated._self_binding.store)
    with pytest.raises(UsageError, match="URL"):
        pickle.dumps(held)


def test_each_thing_that_happens_is_an_event(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path))
    seen: list[str] = []
    with observed(lambda event: seen.append(event.kind)):
        run = parked(Judging, persistence)
        flow = Judging.from_pending(run, persistence)
        outcome(partial(flow.resume, "?"))
        late = Judging.from_pending(run, persistence)
        flow.resume("approved")
        outcome(partial(late.resume, "approved"))
    assert seen == ["granted", "withdrawn", "granted", "settled", "refused"]
