"""The heartbeat: jobs are done when they are due, whatever the thread was waiting for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from remit_gates._heartbeat import HEARTBEAT, Heartbeat
from tests.unit.staged import PATIENCE, Clock


class Jobs:
    """Jobs that note when they were done."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.done: list[tuple[str, float]] = []

    def every(self, name: str, period: float) -> Callable[[], float | None]:
        def job() -> float | None:
            self.done.append((name, self._clock.now))
            return period

        return job

    def times(self, name: str) -> list[float]:
        return [at for done, at in self.done if done == name]


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def jobs(clock: Clock) -> Jobs:
    return Jobs(clock)


@pytest.fixture
def heartbeat(clock: Clock) -> Heartbeat:
    return Heartbeat(clock, threaded=False)


def until(heartbeat: Heartbeat, clock: Clock, end: float) -> None:
    """Sleep exactly as the thread does, until `end`."""
    while (wait := heartbeat.step()) is not None and clock.now + wait <= end:
        clock.now += wait
    clock.now = end


def test_a_job_is_done_each_time_it_is_due(heartbeat: Heartbeat, clock: Clock, jobs: Jobs) -> None:
    heartbeat.add(jobs.every("a", 10.0), 10.0)
    until(heartbeat, clock, 35.0)
    assert jobs.times("a") == [10.0, 20.0, 30.0]


def test_each_step_says_when_the_next_is_due(heartbeat: Heartbeat, jobs: Jobs) -> None:
    assert heartbeat.step() is None
    heartbeat.add(jobs.every("long", 10.0), 10.0)
    assert heartbeat.step() == 10.0
    heartbeat.add(jobs.every("short", 1.0), 1.0)
    assert heartbeat.step() == 1.0


def test_a_short_lease_beside_a_long_one_keeps_its_own_rhythm(
    heartbeat: Heartbeat, clock: Clock, jobs: Jobs
) -> None:
    heartbeat.add(jobs.every("long", 10.0), 10.0)
    clock.now = 5.0
    heartbeat.add(jobs.every("short", 1.0), 1.0)
    until(heartbeat, clock, 10.5)
    assert jobs.times("short") == [6.0, 7.0, 8.0, 9.0, 10.0]
    assert jobs.times("long") == [10.0]


def test_a_job_that_came_late_is_not_made_up_for(
    heartbeat: Heartbeat, clock: Clock, jobs: Jobs
) -> None:
    heartbeat.add(jobs.every("a", 1.0), 1.0)
    clock.now = 60.0  # the process was stopped
    until(heartbeat, clock, 61.5)
    assert jobs.times("a") == [60.0, 61.0]


def test_a_job_that_returns_none_is_done_for_good(heartbeat: Heartbeat, clock: Clock) -> None:
    done: list[float] = []
    heartbeat.add(lambda: done.append(clock.now), 1.0)
    until(heartbeat, clock, 5.0)
    assert (done, len(heartbeat)) == ([1.0], 0)


def test_a_removed_job_is_not_done(heartbeat: Heartbeat, clock: Clock, jobs: Jobs) -> None:
    job = jobs.every("a", 1.0)
    heartbeat.add(job, 1.0)
    heartbeat.remove(job)
    heartbeat.remove(job)
    until(heartbeat, clock, 5.0)
    assert not jobs.done


def test_a_job_that_is_removed_while_it_runs_stays_removed(
    heartbeat: Heartbeat, clock: Clock
) -> None:
    done: list[float] = []

    def job() -> float:
        done.append(clock.now)
        heartbeat.remove(job)
        return 1.0

    heartbeat.add(job, 1.0)
    until(heartbeat, clock, 5.0)
    assert (done, len(heartbeat)) == ([1.0], 0)


def test_a_bound_method_is_one_job_however_often_it_is_looked_up(
    heartbeat: Heartbeat, clock: Clock
) -> None:
    class Lease:
        beats = 0

        def beat(self) -> float:
            self.beats += 1
            return 1.0

    lease = Lease()
    heartbeat.add(lease.beat, 1.0)
    heartbeat.add(lease.beat, 1.0)
    until(heartbeat, clock, 1.5)
    heartbeat.remove(lease.beat)
    assert (lease.beats, len(heartbeat)) == (1, 0)


def test_a_job_that_raises_is_logged_and_leaves_the_others_alone(
    heartbeat: Heartbeat, clock: Clock, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> float:
        raise RuntimeError("broken")

    heartbeat.add(broken, 1.0)
    heartbeat.add(jobs.every("a", 1.0), 1.0)
    until(heartbeat, clock, 2.5)
    assert jobs.times("a") == [1.0, 2.0]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("remit_gates", "ERROR")
    assert "RuntimeError: broken" in (record.exc_text or "")


def test_nothing_runs_without_a_thread_of_its_own(heartbeat: Heartbeat, jobs: Jobs) -> None:
    before = threading.active_count()
    heartbeat.add(jobs.every("a", 1.0), 0.0)
    assert threading.active_count() == before
    assert not jobs.done


class Sleeper:
    """A condition that tells when a thread has begun to wait on it, and for how long."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.sleeps: list[float | None] = []
        self.asleep = threading.Semaphore(0)

    def __enter__(self) -> bool:
        return self._condition.__enter__()

    def __exit__(self, *error: object) -> None:
        self._condition.__exit__(None, None, None)

    def notify_all(self) -> None:
        self._condition.notify_all()

    def wait(self, timeout: float | None) -> bool:
        self.sleeps.append(timeout)
        self.asleep.release()
        return self._condition.wait(timeout)


def test_the_thread_is_woken_for_a_short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = Heartbeat()
    sleeper = Sleeper()
    monkeypatch.setattr(heartbeat, "_wake", sleeper)
    beaten = threading.Event()

    def short() -> None:
        beaten.set()

    heartbeat.add(lambda: 3600.0, 3600.0)
    assert sleeper.asleep.acquire(timeout=PATIENCE)
    assert (sleeper.sleeps[0] or 0.0) > 3000.0
    # It sleeps for an hour now, and this one would be dead by then.
    heartbeat.add(short, 0.0)
    assert beaten.wait(PATIENCE), "the thread slept on over a lease that was due"
    heartbeat.reset()


def test_jobs_that_are_over_before_the_thread_looks_do_not_wake_it_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heartbeat = Heartbeat()
    sleeper = Sleeper()
    monkeypatch.setattr(heartbeat, "_wake", sleeper)
    woken: list[None] = []
    notify = sleeper.notify_all

    def counting() -> None:
        woken.append(None)
        notify()

    monkeypatch.setattr(sleeper, "notify_all", counting)

    def job() -> float:
        return 3600.0

    def comes_and_goes() -> None:
        with sleeper:
            heartbeat.add(job, 3600.0)
            heartbeat.remove(job)

    comes_and_goes()
    assert sleeper.asleep.acquire(timeout=PATIENCE)
    woken.clear()
    for _ in range(5):
        comes_and_goes()
    assert not woken
    assert not sleeper.asleep.acquire(blocking=False)
    heartbeat.reset()


def test_the_thread_is_woken_for_its_first_job_after_it_had_none() -> None:
    heartbeat = Heartbeat()
    first, second = threading.Event(), threading.Event()
    heartbeat.add(first.set, 0.0)
    assert first.wait(PATIENCE)
    heartbeat.add(second.set, 0.0)
    assert second.wait(PATIENCE)
    heartbeat.reset()


def test_the_thread_never_keeps_a_process_from_ending() -> None:
    heartbeat = Heartbeat()
    threads: list[threading.Thread] = []
    seen = threading.Event()

    def job() -> None:
        threads.append(threading.current_thread())
        seen.set()

    heartbeat.add(job, 0.0)
    assert seen.wait(PATIENCE)
    assert threads[0].daemon
    heartbeat.reset()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_no_job_of_its_parents_and_a_heartbeat_of_its_own() -> None:
    def parents() -> float:
        return 3600.0

    HEARTBEAT.add(parents, 3600.0)
    try:
        pid = os.fork()
        if pid == 0:
            inherited = len(HEARTBEAT)
            beaten = threading.Event()
            HEARTBEAT.add(beaten.set, 0.0)
            os._exit(0 if inherited == 0 and beaten.wait(PATIENCE) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(HEARTBEAT) == 1
    finally:
        HEARTBEAT.remove(parents)
