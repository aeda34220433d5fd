"""Two loops, one behaviour: every test but those on cancellation runs on both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import pytest

from remit_gates._drive import adrive, drive
from remit_gates._model import Record
from remit_gates._ops import Dead, Flow, Load, Now, Op, Read, Renew, Sleep, Swap
from remit_gates._passage import enter
from remit_gates._policy import Policy
from remit_gates.errors import StoreUnavailable
from tests.unit.worlds import RUN, World, holder, landed


T = TypeVar("T")
Drive = Callable[[Flow[Any], Any], Any]


class Async:
    """A port whose every result must be awaited, over one whose results are plain."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> Any:
            await asyncio.sleep(0)
            return getattr(self.world, name)(*args)

        return call


def on_sync(flow: Flow[T], world: World) -> T:
    return drive(flow, world)


def on_async(flow: Flow[T], world: World) -> T:
    port: Any = Async(world)
    return asyncio.run(adrive(flow, port))


def on_mixed(flow: Flow[T], world: World) -> T:
    return asyncio.run(adrive(flow, world))


@pytest.fixture(params=[on_sync, on_async, on_mixed])
def loop(request: pytest.FixtureRequest) -> Drive:
    chosen: Drive = request.param
    return chosen


def test_every_operation_is_performed_and_its_result_sent_in(loop: Drive, world: World) -> None:
    def flow() -> Flow[list[Any]]:
        got: list[Any] = []
        got.append((yield Now()))
        yield Sleep(2.0)
        got.append((yield Now()))
        got.append((yield Read(RUN)).version)
        got.append((yield Swap(RUN, None, Record(token=1), None, True)))
        got.append((yield Renew(RUN, 1, 30.0)))
        got.append((yield Load()))
        got.append((yield Dead(holder("a"))))
        return got

    assert loop(flow(), world) == [50.0, 52.0, None, 1, False, ["p1"], False]
    assert world.calls == ["read", "claim", "renew", "load", "dead"]


def test_a_flow_may_end_without_an_operation(loop: Drive, world: World) -> None:
    def flow() -> Flow[str]:
        return "done"
        yield Now()

    assert loop(flow(), world) == "done"


def failing(call: Callable[[], Any]) -> Any:
    raise StoreUnavailable("down")


def test_the_error_of_an_operation_is_raised_inside_the_flow(loop: Drive, world: World) -> None:
    def flow() -> Flow[str]:
        try:
            yield Load()
        except StoreUnavailable:
            yield Sleep(1.0)
            return f"then slept until {yield Now()}"
        return "no error"

    world.script("load", failing)
    assert loop(flow(), world) == "then slept until 51.0"


def test_a_flow_may_end_on_an_error(loop: Drive, world: World) -> None:
    def flow() -> Flow[str]:
        try:
            yield Load()
        except StoreUnavailable:
            return "caught"
        return "no error"

    world.script("load", failing)
    assert loop(flow(), world) == "caught"


def test_an_error_that_a_flow_does_not_catch_comes_out(loop: Drive, world: World) -> None:
    closed = []

    def flow() -> Flow[None]:
        try:
            yield Load()
        finally:
            closed.append(True)

    world.script("load", failing)
    with pytest.raises(StoreUnavailable, match="down"):
        loop(flow(), world)
    assert closed == [True]


def test_a_flows_own_error_comes_out(loop: Drive, world: World) -> None:
    def flow() -> Flow[None]:
        yield Now()
        raise LookupError("own")

    with pytest.raises(LookupError, match="own"):
        loop(flow(), world)


class Closing(Generator[Op, Any, str]):
    """A flow that notes that it was closed."""

    closed = False

    def send(self, value: Any) -> Op:
        raise StopIteration("done")

    def throw(self, *args: Any) -> Op:
        raise AssertionError(args)

    def close(self) -> None:
        self.closed = True


def test_a_flow_is_closed_in_the_end(loop: Drive, world: World) -> None:
    flow = Closing()
    assert loop(flow, world) == "done"
    assert flow.closed


class Gated:
    """An async port whose operations say that they began, and wait to be let on.

    Attributes:
        failing: Whether they then fail.
        only: The one operation that does so; empty for every one.
        skip: How many times that operation just takes place first.
    """

    def __init__(
        self, world: World, *, failing: bool = False, only: str = "", skip: int = 0
    ) -> None:
        self.world = world
        self.failing = failing
        self.only = only
        self.skip = skip
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> Any:
            if self.only in ("", name):
                self.skip -= 1
                if self.skip < 0:
                    self.began.set()
                    await self.go.wait()
            if self.failing:
                raise StoreUnavailable("down")
            return getattr(self.world, name)(*args)

        return call


def swapping(seen: list[Any]) -> Flow[None]:
    try:
        yield Swap(RUN, None, Record(token=1), None, True)
    except BaseException as error:
        seen.append(error)
        raise


@pytest.mark.parametrize("failing", [False, True])
def test_a_cancellation_waits_for_a_swap_that_is_on_its_way(world: World, failing: bool) -> None:
    seen: list[Any] = []

    async def scenario() -> None:
        port: Any = Gated(world, failing=failing)
        task = asyncio.ensure_future(adrive(swapping(seen), port))
        await port.began.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        port.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert [type(error) for error in seen] == [asyncio.CancelledError]
    assert (RUN in world.rows) is not failing


def test_a_second_cancellation_cuts_short_neither_the_swap_nor_what_takes_it_back(
    world: World,
) -> None:
    async def scenario() -> None:
        port: Any = Gated(world, only="swap")
        flow = enter(RUN, holder("a"), Policy(), world.answers("a"))
        task = asyncio.ensure_future(adrive(flow, port))
        await port.began.wait()
        # Some frameworks cancel a task until it ends.
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
            port.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert world.calls == ["read", "load", "claim", "read", "swap"]
    assert world.record == Record(token=world.record.token)


def test_a_cancellation_in_mid_read_takes_back_a_claim_that_may_have_landed(
    world: World,
) -> None:
    world.script("claim", landed)

    async def scenario() -> None:
        port: Any = Gated(world, only="read", skip=1)
        flow = enter(RUN, holder("a"), Policy(), world.answers("a"))
        task = asyncio.ensure_future(adrive(flow, port))
        await port.began.wait()
        task.cancel()
        port.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert world.record.claim is None
    assert world.record.token > 0


def test_a_cancellation_does_not_wait_for_anything_else(world: World) -> None:
    seen: list[Any] = []

    def flow() -> Flow[None]:
        try:
            yield Read(RUN)
        except BaseException as error:
            seen.append(error)
            raise

    async def scenario() -> None:
        port: Any = Gated(world)
        task = asyncio.ensure_future(adrive(flow(), port))
        await port.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert [type(error) for error in seen] == [asyncio.CancelledError]
