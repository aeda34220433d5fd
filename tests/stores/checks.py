"""What is asked of every store on a server, whichever server that is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from remit_gates.errors import OutcomeUnknown, StoreUnavailable
from remit_gates.stores import AsyncStore, Store
from tests.stores import scripts
from tests.stores.records import RUN, claimed


def costs(store: Store, counter: Callable[[], int]) -> list[int]:
    """By how much `counter` goes up with each operation: read, three swaps, of which the last
    is not durable, renew, scan, prune, delete."""
    version: int | None = None

    def swap() -> None:
        nonlocal version
        version = store.swap(RUN, version, claimed(1), 30.0)

    operations: list[Callable[[], object]] = [
        lambda: store.read(RUN),
        swap,
        swap,
        lambda: store.swap(RUN, version, claimed(1), 30.0, False),
        lambda: store.renew(RUN, 1, 30.0),
        lambda: list(store.scan()),
        lambda: store.prune(3600.0),
        lambda: store.delete(RUN),
    ]
    counts = []
    for operation in operations:
        before = counter()
        operation()
        counts.append(counter() - before)
    return counts


def tells_that_its_server_hangs(
    store: Store, frozen: Callable[[], AbstractContextManager[None]]
) -> None:
    """`store` has a short timeout; `frozen` has its server stand still."""
    version = store.swap(RUN, None, claimed(1), 30.0)
    with frozen():
        with pytest.raises(OutcomeUnknown):
            store.swap(RUN, version, claimed(2), 30.0)
        with pytest.raises(StoreUnavailable):
            store.read(RUN)
        with pytest.raises(StoreUnavailable):
            store.renew(RUN, 1, 30.0)
    assert store.read(RUN).version is not None
    store.close()


async def tells_async_callers_that_its_server_hangs(
    store: AsyncStore, frozen: Callable[[], AbstractContextManager[None]]
) -> None:
    """The same, of an async store."""
    version = (await store.read(RUN)).version
    with frozen():
        with pytest.raises(OutcomeUnknown):
            await store.swap(RUN, version, claimed(3), 30.0)
        with pytest.raises(StoreUnavailable):
            await store.read(RUN)
    await store.close()


def serves_several_event_loops(shared: AsyncStore) -> None:
    """`shared` holds a record."""

    async def several() -> list[int | None]:
        snaps = await asyncio.gather(*(shared.read(RUN) for _ in range(8)))
        return [snap.version for snap in snaps]

    assert len({*asyncio.run(several()), *asyncio.run(several())}) == 1
    versions: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: versions.extend(asyncio.run(several()))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(versions) == 24
    assert len(set(versions)) == 1
    assert versions[0] is not None


def connects_anew_in_a_fork(url: str) -> None:
    """The store at `url` is set up."""
    out = scripts.run(
        """
        import os, sys
        from remit_gates.stores import open_store
        from tests.stores.records import RUN, claimed

        store = open_store(sys.argv[1])
        version = store.swap(RUN, None, claimed(1), 30.0)
        child = os.fork()
        if child == 0:
            moved = store.swap(RUN, version, claimed(2), 30.0)
            store.close()
            os._exit(0 if moved else 1)
        assert os.waitpid(child, 0)[1] == 0
        print(store.read(RUN).record == claimed(2))
        store.close()
        """,
        url,
    )
    assert out == "True"
