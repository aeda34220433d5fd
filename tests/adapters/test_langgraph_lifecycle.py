"""The record lives and dies with its thread, and a gate that cannot hold says so."""

from __future__ import annotations

import copy
from importlib.metadata import version
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from remit_gates import Policy, _supported
from remit_gates._model import Record
from remit_gates.errors import (
    AlreadyConsumed,
    GateNotEngaged,
    NotParked,
    SetupRequired,
    UnsupportedVersion,
    UsageError,
)
from remit_gates.langgraph import gate, release
from remit_gates.langgraph._versions import HOOKS, hooked_class, installed
from tests.adapters.foreign import ForeignSaver
from tests.adapters.graphs import Journal, approval, asks, chain
from tests.adapters.workers import Graph, Team, Worker, on


YES: Any = Command(resume="yes")

EACH = pytest.mark.kinds(
    *("memory", "memory-async", "sqlite", "sqlite-async", "postgres", "postgres-async-pool"),
    *("redis", "redis-async", "foreign"),
)


def record(worker: Worker, config: Any) -> Record:
    """What the store knows of a thread."""
    binding = worker.saver._remit
    found: Record = worker.call(_Reader(binding), "read", config["configurable"]["thread_id"])
    return found


class _Reader:
    """Reads records in either colour."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def read(self, thread: str) -> Any:
        return self._binding.store.read(self._binding.key(thread)).record

    async def aread(self, thread: str) -> Any:
        return (await self._binding.astore.read(self._binding.key(thread))).record


def served(team: Team, journal: Journal) -> tuple[Graph, dict[str, Any]]:
    """A graph, and a thread on which an answer was served."""
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    graph.invoke(YES, config)
    assert record(graph.worker, config).consumptions
    return graph, config


@EACH
def test_a_deleted_thread_takes_its_record_along(team: Team, journal: Journal) -> None:
    graph, config = served(team, journal)
    graph.worker.call(graph.worker.saver, "delete_thread", config["configurable"]["thread_id"])

    assert record(graph.worker, config) == Record()
    with pytest.raises(NotParked):
        graph.invoke(YES, config)
    graph.invoke({}, config)
    assert graph.invoke(YES, config)["log"] == ["ask=yes", "after="]


@EACH
def test_other_threads_keep_their_records(team: Team, journal: Journal) -> None:
    graph, config = served(team, journal)
    _, other = served(team, journal)
    graph.worker.call(graph.worker.saver, "delete_thread", config["configurable"]["thread_id"])

    assert record(graph.worker, other).consumptions


def overrides(worker: Worker, name: str) -> bool:
    """Whether the saver itself can do `name`; what it cannot, its gate does not offer."""
    bare = type(worker.saver).__mro__[1]
    return getattr(bare, name, None) is not getattr(BaseCheckpointSaver, name, None)


@pytest.mark.kinds("copying", "copying-async")
def test_a_copied_thread_knows_what_was_answered(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "1?", "2?"))
    graph, config = team.worker().compile(builder), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    graph.invoke(Command(resume={asked.id: "a"}), on(config, remit_delivery="m"))
    copied = team.thread()
    names = [each["configurable"]["thread_id"] for each in (config, copied)]
    graph.worker.call(graph.worker.saver, "copy_thread", *names)

    assert record(graph.worker, copied) == record(graph.worker, config)
    with pytest.raises(AlreadyConsumed):
        graph.invoke(Command(resume="b"), on(copied, remit_delivery="m"))
    # Each is a run of its own from here on.
    assert graph.invoke(Command(resume="b"), copied) == {"log": ["ask=a+b"]}
    assert graph.invoke(Command(resume="c"), config) == {"log": ["ask=a+c"]}


@pytest.mark.kinds("copying", "copying-async")
def test_pruning_keeps_the_record_of_what_it_keeps(team: Team, journal: Journal) -> None:
    graph, config = served(team, journal)
    name = config["configurable"]["thread_id"]
    graph.worker.call(graph.worker.saver, "prune", [name], strategy="keep_latest")
    assert record(graph.worker, config).consumptions

    graph.worker.call(graph.worker.saver, "prune", [name], strategy="delete")
    assert record(graph.worker, config) == Record()


@pytest.mark.kinds("memory", "sqlite", "postgres", "redis", "redis-async", "foreign")
def test_a_gate_offers_what_its_saver_can_do(team: Team) -> None:
    worker = team.worker()
    gated, bare = type(worker.saver), type(worker.saver).__mro__[1]

    for name in dir(BaseCheckpointSaver):
        mine, theirs = getattr(gated, name, None), getattr(bare, name, None)
        inherited = theirs is getattr(BaseCheckpointSaver, name, None)
        assert not inherited or mine is theirs or name.startswith("__"), name
    assert isinstance(worker.saver, bare)


def test_a_gated_saver_is_gated_once(team: Team) -> None:
    saver = team.worker().saver
    assert gate(saver) is saver
    assert gate(saver, policy=Policy()) is saver
    options: list[dict[str, Any]] = [
        {"policy": Policy(lease=5.0)},
        {"secret": "k"},
        {"store": "memory://"},
    ]
    for given in options:
        with pytest.raises(UsageError, match=f"gated already.*{next(iter(given))}="):
            gate(saver, **given)


def test_the_saver_that_was_passed_stays_as_it_is() -> None:
    saver = InMemorySaver()
    gated = gate(saver)

    assert type(saver) is InMemorySaver
    assert gated is not saver
    assert vars(gated) is vars(saver)


def test_two_gates_on_one_saver_share_its_records(journal: Journal) -> None:
    saver = InMemorySaver()
    first, second = (approval(journal).compile(checkpointer=gate(saver)) for _ in range(2))
    config: Any = on("t")
    first.invoke({}, config)
    first.invoke(YES, config)

    with pytest.raises(AlreadyConsumed):
        second.invoke(YES, config)


def test_namespaces_part_a_shared_store(journal: Journal) -> None:
    """Of one another's runs they know nothing, even of the same name."""
    store = "memory://parted"
    for namespace in ("a", "b"):
        saver = gate(InMemorySaver(), store=store, namespace=namespace)
        graph = approval(journal).compile(checkpointer=saver)
        config: Any = on("t", remit_delivery="m")
        graph.invoke({}, config)
        assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}


def test_a_saver_of_unknown_make_needs_a_store() -> None:
    with pytest.raises(UsageError, match="store=") as refused:
        gate(ForeignSaver(InMemorySaver()))
    assert "ForeignSaver" in str(refused.value)


@pytest.mark.parametrize("wrong", [None, "saver", InMemorySaver, object()])
def test_what_is_no_saver_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="checkpoint saver"):
        gate(wrong)


@pytest.mark.parametrize("store", ["nonsense", 7])
def test_what_is_no_store_is_refused_at_once(store: Any) -> None:
    with pytest.raises(UsageError):
        gate(InMemorySaver(), store=store)


def test_release_needs_a_gated_graph(journal: Journal) -> None:
    graph = approval(journal).compile(checkpointer=InMemorySaver())
    with pytest.raises(UsageError, match="gated"):
        release(graph, on("t"))


@EACH
def test_a_run_without_the_hook_is_not_served(team: Team, journal: Journal) -> None:
    """What LangGraph's loop asks its saver, without the loop that the gate knows of."""
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    asked = on(config, __pregel_runtime=object(), checkpoint_ns="")

    with pytest.raises(GateNotEngaged):
        graph.worker.call(graph.worker.saver, "get_tuple", asked)


def test_a_removed_hook_is_noticed(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph.pregel._loop import SyncPregelLoop

    graph = approval(journal).compile(checkpointer=gate(InMemorySaver()))
    config: Any = on("t")
    graph.invoke({}, config)
    wrapped = SyncPregelLoop.__dict__["__enter__"]
    monkeypatch.setattr(SyncPregelLoop, "__enter__", wrapped.__wrapped__)

    with pytest.raises(GateNotEngaged):
        graph.invoke(YES, config)
    assert journal.lines == ["ask"]
    monkeypatch.undo()
    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}


@pytest.mark.parametrize("text", ["0.6.11", "2.0.0", "2.1.0rc1"])
def test_another_version_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_supported, "version", lambda name: text)
    with pytest.raises(UnsupportedVersion, match=text):
        gate(InMemorySaver())


@pytest.mark.parametrize("text", ["1.0.0", "1.2.9", "1.3.0rc1", "1.99"])
def test_every_release_of_the_first_major_is_gated(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_supported, "version", lambda name: text)
    assert (1, 0, 0) <= installed() < (2, 0, 0)


def test_a_missing_hook_is_refused() -> None:
    module, name, methods = HOOKS[0]
    assert hooked_class(module, name, methods)
    with pytest.raises(UnsupportedVersion, match="NoSuchLoop"):
        hooked_class(module, "NoSuchLoop", methods)
    with pytest.raises(UnsupportedVersion, match="no_such_method"):
        hooked_class(module, name, (*methods, "no_such_method"))


def test_the_installed_version_is_read() -> None:
    assert ".".join(map(str, installed())) == version("langgraph")


@pytest.mark.kinds("fresh-postgres", "fresh-postgres-async")
def test_postgres_is_set_up_by_the_savers_own_setup(team: Team, journal: Journal) -> None:
    bare = team.bare()
    made = bare.saver.setup()
    if bare.loop is not None:
        bare.loop.run(made)
    graph, config = team.worker().compile(approval(journal)), team.thread()
    graph.invoke({}, config)
    with pytest.raises(SetupRequired):
        graph.invoke(YES, config)
    assert journal.lines == ["ask"]

    team.setup()
    assert graph.invoke(YES, config) == {"log": ["ask=yes", "after="]}


def test_a_gated_saver_with_an_allowlist_is_still_gated(journal: Journal) -> None:
    """LangGraph copies a saver so when it is told to be strict about types."""
    saver = gate(InMemorySaver())
    other: Any = (
        saver.with_allowlist([("builtins", "str")])
        if hasattr(saver, "with_allowlist")
        else copy.copy(saver)
    )
    first = approval(journal).compile(checkpointer=saver)
    second = approval(journal).compile(checkpointer=other)
    config: Any = on("t")
    first.invoke({}, config)
    first.invoke(YES, config)

    assert type(other) is type(saver)
    with pytest.raises(AlreadyConsumed):
        second.invoke(YES, config)
