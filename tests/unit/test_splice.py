"""A flow whose loads are done by another flow is a flow like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remit_gates._drive import drive
from remit_gates._ops import Flow, Load, Now, Read, Sleep, splice
from remit_gates._passage import Passage, enter
from remit_gates._policy import Policy
from remit_gates.errors import StoreUnavailable
from tests.unit.worlds import RUN, World, down, holder


def reading() -> Flow[str]:
    snap = yield Read(RUN)
    return f"loaded at version {snap.version}"


def test_each_load_is_done_by_a_flow_of_its_own(world: World) -> None:
    def flow() -> Flow[list[Any]]:
        yield Sleep(2.0)
        return [(yield Load()), (yield Now()), (yield Load())]

    spliced = splice(flow(), reading)
    assert drive(spliced, world) == ["loaded at version None", 52.0, "loaded at version None"]
    assert world.calls == ["read", "read"]


def test_a_load_may_need_no_operation(world: World) -> None:
    def loaded() -> Flow[list[str]]:
        return ["p1"]
        yield Now()

    passage = drive(splice(enter(RUN, holder("a"), Policy(), world.answers("a")), loaded), world)
    assert isinstance(passage, Passage)
    assert (passage.loaded, world.calls) == (["p1"], ["read", "claim"])


def catching(op: Callable[[], Any]) -> Flow[str]:
    try:
        yield op()
    except StoreUnavailable as error:
        yield Sleep(1.0)
        return f"{error}, then {yield Now()}"
    return "no error"


@pytest.mark.parametrize("op", [Load, lambda: Read(RUN)], ids=["load", "other"])
def test_an_error_is_the_flows_to_catch(world: World, op: Callable[[], Any]) -> None:
    world.script("read", down)
    assert drive(splice(catching(op), reading), world) == "down, then 51.0"


def test_an_error_is_first_the_loads_to_catch(world: World) -> None:
    def careful() -> Flow[str]:
        try:
            return (yield from reading())
        except StoreUnavailable:
            return "nothing"

    def flow() -> Flow[Any]:
        return (yield Load())

    world.script("read", down)
    assert drive(splice(flow(), careful), world) == "nothing"


def test_an_error_that_nobody_catches_comes_out_and_closes_the_flow(world: World) -> None:
    closed = []

    def flow() -> Flow[Any]:
        try:
            return (yield Load())
        finally:
            closed.append(True)

    world.script("read", down)
    with pytest.raises(StoreUnavailable, match="down"):
        drive(splice(flow(), reading), world)
    assert closed == [True]


def test_an_interrupt_is_the_flows_to_clean_up_after(world: World) -> None:
    def interrupt(call: Callable[[], Any]) -> Any:
        raise KeyboardInterrupt

    def flow() -> Flow[Any]:
        try:
            return (yield Load())
        except KeyboardInterrupt:
            yield Sleep(1.0)
            raise

    world.script("read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        drive(splice(flow(), reading), world)
    assert world.naps == [1.0]


@pytest.mark.parametrize("op", [Load, lambda: Read(RUN)], ids=["load", "other"])
def test_closing_it_closes_both(op: Callable[[], Any]) -> None:
    closed = []

    def noting(name: str, op: Any) -> Flow[Any]:
        try:
            return (yield op)
        except GeneratorExit:
            closed.append(name)
            raise

    spliced = splice(noting("flow", op()), lambda: noting("load", Now()))
    next(spliced)
    spliced.close()
    assert closed == (["load", "flow"] if op is Load else ["flow"])


def test_a_flow_that_asks_for_nothing_is_not_one_to_splice(world: World) -> None:
    def flow() -> Flow[str]:
        return "done"
        yield Now()

    with pytest.raises(AssertionError, match="nothing to load"):
        drive(splice(flow(), reading), world)
