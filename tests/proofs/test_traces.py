"""Real stores under load take only steps that the model allows, and a store that does not is
caught."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remit_gates._model import Record, RunKey, Snapshot
from remit_gates._policy import Policy
from remit_gates.stores import Store, open_store
from remit_gates.stores.memory import MemoryStore
from tests.proofs.load import loaded
from tests.proofs.traces import faults, history, step
from tests.stores.harnesses import Wrapper


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    opened: Any = MemoryStore()
    if request.param != "memory":
        opened = open_store(request.getfixturevalue(f"{request.param}_url"))
    opened.setup()
    yield opened
    opened.close()


@pytest.mark.parametrize("choice", ["refuse", "serve"])
def test_a_store_under_load_takes_only_steps_of_the_model(store: Store, choice: Any) -> None:
    events, framework = loaded(store, Policy(on_abandoned=choice), seed=1)
    assert list(faults(events, choice == "serve")) == []
    # No question was passed twice, and none was left out.
    for run in framework.runs:
        assert framework.passed[run] == list(range(framework.place[run]))
    # A trace in which little happened shows little.
    kinds = set[str | None]()
    for run in framework.runs:
        versions, _ = history(run, events)
        kinds |= {step(versions, at, choice == "serve") for at in range(1, len(versions))}
    assert {"granted", "settled", "withdrawn"} <= kinds
    assert framework.far


class Unchecked(Wrapper):
    """Swaps whatever the version."""

    def swap(
        self,
        run: RunKey,
        expected: int | None,
        record: Record,
        lease: float | None,
        durable: bool = True,
    ) -> int | None:
        return self.inner.swap(run, self.inner.read(run).version, record, lease, durable)


class Stale(Wrapper):
    """Reads what was there a read before, now and then."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.last: dict[RunKey, list[Snapshot]] = {}

    def read(self, run: RunKey) -> Snapshot:
        kept = self.last.setdefault(run, [])
        kept.append(self.inner.read(run))
        return kept[-4] if len(kept) % 5 == 4 else kept[-1]


def caught(store: Store, seed: int) -> bool:
    try:
        events, _ = loaded(store, Policy(on_abandoned="serve"), seed)
    except KeyError:
        # A flow that finds a claim of its own that it cannot have sent.
        return True
    return any(faults(events, serves=True))


@pytest.mark.parametrize("broken", [Unchecked, Stale])
def test_a_broken_store_is_caught(broken: type[Wrapper]) -> None:
    # Threads may miss one another once, not eight times.
    assert any(caught(broken(MemoryStore()), seed) for seed in range(8))
