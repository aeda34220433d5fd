"""A kickoff goes on with a run only where one says so: a restored checkpoint is carried to
its end once, and under `scope="run"` a run is kicked off by one caller at a time."""

# CrewAI is absent where types are checked, so its decorators and classes have none.
# pyright: reportCallIssue=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crewai.flow.flow import Flow
from crewai.flow.persistence import SQLiteFlowPersistence
from crewai.state.checkpoint_config import CheckpointConfig

from remit_gates import Policy
from remit_gates.crewai import gate
from remit_gates.errors import AlreadyConsumed, InProgress
from tests.adapters.crews import Crew
from tests.adapters.flows import Plain, Steps, kept, stepping
from tests.adapters.racing import Background, outcome, race
from tests.journal import Journal
from tests.waiting import until


RUN = Policy(scope="run")

Saved = tuple[Any, CheckpointConfig, str]


# One run, by its id.


@pytest.mark.parametrize("racers", [2, 4, 8])
def test_of_many_threads_one_kicks_off(
    racers: int, path: str, diary: Journal, tmp_path: Path
) -> None:
    persistence = gate(SQLiteFlowPersistence(path), policy=RUN)
    run = f"threads-{racers}-{tmp_path.name}"
    diary.hold(run, "second")

    def kick() -> Any:
        return outcome(partial(Steps(persistence=persistence).kickoff, inputs={"id": run}))

    winner = Background(kick)
    diary.await_step(run, "second")
    others = race(*[kick] * (racers - 1))
    diary.let_go(run, "second")

    assert winner.result() == "3"
    assert [type(error) for error in others] == [InProgress] * (racers - 1)
    assert diary.steps(run) == ["first", "second", "third"]
    # And afterwards the run can be used again.
    assert kick() == "3"


@pytest.mark.parametrize("racers", [2, 8])
def test_of_many_tasks_one_kicks_off(
    racers: int, path: str, diary: Journal, tmp_path: Path
) -> None:
    persistence = gate(SQLiteFlowPersistence(path), policy=RUN)
    run = f"tasks-{racers}-{tmp_path.name}"

    async def kick() -> Any:
        try:
            return await Steps(persistence=persistence).kickoff_async(inputs={"id": run})
        except Exception as error:
            return error

    async def go() -> list[Any]:
        diary.hold(run, "first")
        racing = [asyncio.create_task(kick()) for _ in range(racers)]
        # The first to be admitted stands still until all the others were refused.
        while sum(task.done() for task in racing) < racers - 1:
            await asyncio.sleep(0.005)
        late = await kick()
        diary.let_go(run, "first")
        return [*await asyncio.gather(*racing), late]

    found = asyncio.run(go())
    assert found.count("3") == 1
    assert [type(error) for error in found if error != "3"] == [InProgress] * racers
    assert diary.steps(run) == ["first", "second", "third"]


@pytest.mark.parametrize("racers", [2, 4, 8])
def test_of_many_processes_one_kicks_off(
    racers: int, path: str, diary: Journal, crews: Crew, tmp_path: Path
) -> None:
    run = f"processes-{racers}-{tmp_path.name}"
    crews.open(path, racers, scope="run")
    diary.hold(run, "first")
    for worker in crews.workers[:racers]:
        worker.tell("kickoff", "Steps", run, racers)
    diary.await_step(run, "first")
    # One stands in its first method until the others have been told.
    until(lambda: sum(worker.finished for worker in crews.workers[:racers]) == racers - 1)
    diary.let_go(run, "first")

    kinds = sorted(worker.result() for worker in crews.workers[:racers])
    assert kinds == ["3", *["InProgress"] * (racers - 1)]
    assert diary.steps(run) == ["first", "second", "third"]


def test_by_default_kickoffs_of_one_run_run_beside_each_other(path: str, diary: Journal) -> None:
    """As they do without a gate; and the tests above can fail."""
    persistence = gate(SQLiteFlowPersistence(path))
    run = f"beside-{Path(path).parent.name}"
    diary.hold(run, "first")

    def kick() -> Any:
        return Steps(persistence=persistence).kickoff(inputs={"id": run})

    both = [Background(kick) for _ in range(2)]
    diary.await_step(run, "first", times=2)
    diary.let_go(run, "first")
    assert [each.result() for each in both] == ["3", "3"]


def test_a_kickoff_keeps_an_answer_out(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path), policy=RUN)
    run = str(Plain(persistence=persistence).kickoff().context.flow_id)
    flow = Plain.from_pending(run, persistence)
    diary.hold(run, "draft")
    again = Background(partial(Plain(persistence=persistence).kickoff, inputs={"id": run}))
    diary.await_step(run, "draft", times=2)
    refused = outcome(partial(flow.resume, "yes"))
    diary.let_go(run, "draft")
    assert again.result().context.flow_id == run
    assert isinstance(refused, InProgress)
    assert Plain.from_pending(run, persistence).resume("no") == "published:no"


def test_a_kickoff_that_failed_may_be_tried_again(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path), policy=RUN)
    run = f"failed-{Path(path).parent.name}"
    with pytest.raises(RuntimeError, match="second method failed"):
        Steps(persistence=persistence).kickoff(inputs={"id": run, "fail": True})
    assert Steps(persistence=persistence).kickoff(inputs={"id": run, "fail": False}) == "3"


def test_a_flow_may_kick_itself_off(path: str, diary: Journal) -> None:
    """Within its own run; CrewAI calls that reentrant."""
    from crewai.flow.flow import listen, start

    from tests.adapters.flows import Light

    persistence = gate(SQLiteFlowPersistence(path), policy=RUN)

    class Nested(Light, Flow):
        @start()
        def first(self):  # type: ignore[no-untyped-def]
            return "outer"

        @listen(first)
        async def second(self, result):  # type: ignore[no-untyped-def]
            return await Steps(persistence=persistence).kickoff_async(inputs={"id": self.flow_id})

    assert Nested(persistence=persistence).kickoff(inputs={"id": "nest"}) == "3"


def test_forks_are_free(path: str, diary: Journal) -> None:
    persistence = gate(SQLiteFlowPersistence(path), policy=RUN)
    cls = stepping(persistence)
    run = f"fork-{Path(path).parent.name}"
    cls().kickoff(inputs={"id": run})
    diary.hold(run, "first")
    running = Background(partial(cls().kickoff, inputs={"id": run}))
    diary.await_step(run, "first", times=2)
    forks = [cls().kickoff(restore_from_state_id=run) for _ in range(2)]
    diary.let_go(run, "first")
    assert (running.result(), forks) == ("3", ["3", "3"])


# A checkpoint.


@pytest.fixture(scope="module")
def template(crews: Crew, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint of a run that failed in its second method. CrewAI restores the first flow
    of the process that wrote it, so it comes from a process of its own."""
    for _ in range(5):
        folder = tmp_path_factory.mktemp("checkpoints")
        made = (str(folder / "flows.db"), str(folder / "made"))
        with crews.fresh() as worker:
            if file := worker.ask("checkpoint", *made, "TEMPLATE"):
                return Path(file).read_text("utf-8")
    pytest.fail("CrewAI wrote no checkpoint in five processes")


@pytest.fixture
def checkpoint(template: str, path: str, tmp_path: Path) -> Saved:
    """A class, a checkpoint of it, and the run that it is of."""
    run = f"checkpoint-{tmp_path.name}"
    file = tmp_path / "main" / "20260101T000000_1_p-none.json"
    file.parent.mkdir()
    file.write_text(template.replace("TEMPLATE", run), "utf-8")
    return (
        stepping(gate(SQLiteFlowPersistence(path))),
        CheckpointConfig(restore_from=str(file)),
        run,
    )


def mended(cls: Any, config: CheckpointConfig) -> Any:
    flow = cls.from_checkpoint(config)
    flow.state["fail"] = False
    return flow


def test_a_checkpoint_is_kicked_off_once(checkpoint: Saved, diary: Journal) -> None:
    cls, config, run = checkpoint
    before = diary.steps(run)
    flows = [mended(cls, config) for _ in range(2)]

    outcomes = race(*[flow.kickoff for flow in flows])

    errors = [error for error in outcomes if isinstance(error, Exception)]
    assert [type(error) for error in errors] in ([InProgress], [AlreadyConsumed])
    assert len(outcomes) - len(errors) == 1
    ran = diary.steps(run)[len(before) :]
    assert ran.count("second") == ran.count("third") == 1
    with pytest.raises(AlreadyConsumed):
        mended(cls, config).kickoff()
    assert diary.steps(run)[len(before) :] == ran


def test_it_is_the_same_by_the_keyword(checkpoint: Saved, diary: Journal) -> None:
    cls, config, run = checkpoint
    mended(cls, config).kickoff()
    ran = diary.steps(run)
    with pytest.raises(AlreadyConsumed):
        cls().kickoff(from_checkpoint=config)
    assert diary.steps(run) == ran


def test_a_restored_run_that_failed_may_be_restored_again(
    checkpoint: Saved, diary: Journal
) -> None:
    cls, config, _ = checkpoint
    with pytest.raises(RuntimeError, match="second method failed"):
        cls.from_checkpoint(config).kickoff()
    mended(cls, config).kickoff()
    with pytest.raises(AlreadyConsumed):
        mended(cls, config).kickoff()


def test_to_restore_is_to_look(checkpoint: Saved, path: str) -> None:
    cls, config, run = checkpoint
    for _ in range(3):
        assert cls.from_checkpoint(config).flow_id == run
    assert kept(path, run).version is None


def test_forks_of_a_checkpoint_are_free(checkpoint: Saved, path: str, diary: Journal) -> None:
    cls, config, run = checkpoint
    mended(cls, config).kickoff()
    for _ in range(2):
        fork = cls.fork(config)
        fork.state["fail"] = False
        fork.kickoff()
        assert diary.steps(fork.flow_id)[-1:] == ["third"]
        assert fork.flow_id != run
        assert kept(path, fork.flow_id).version is None


def test_a_restored_instance_is_fresh_afterwards(checkpoint: Saved, diary: Journal) -> None:
    cls, config, run = checkpoint
    flow = mended(cls, config)
    flow.kickoff()
    flow.kickoff()
    assert diary.steps(run).count("third") == 2


# What is no flow.


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what CrewAI itself uses still
def test_a_crew_is_replayed_as_often_as_one_likes() -> None:
    """That is a deliberate re-run; and crews have no persistence that could be gated."""
    from crewai import Agent, Task
    from crewai import Crew as Made
    from crewai.llms.base_llm import BaseLLM

    asked: list[Any] = []

    class Scripted(BaseLLM):
        def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            asked.append(messages)
            return "Thought: I know it.\nFinal Answer: done"

    agent = Agent(role="a", goal="b", backstory="c", llm=Scripted(model="scripted"))
    task = Task(description="do it", expected_output="done", agent=agent)
    crew = Made(agents=[agent], tasks=[task])
    crew.kickoff()
    for times in (2, 3):
        assert crew.replay(task_id=str(task.id)).raw == "done"
        assert len(asked) == times
