"""What the gated views of one persistence share: its store, its run, and how a claim on that
run is taken, before anything is written to the persistence."""

from __future__ import annotations

import asyncio
import copy
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_graph.persistence import BaseStatePersistence
from pydantic_graph.persistence.file import FileStatePersistence
from pydantic_graph.persistence.in_mem import FullStatePersistence, SimpleStatePersistence

from remit_gates._claim import ActiveClaim
from remit_gates._drive import adrive
from remit_gates._keeper import Keeper
from remit_gates._liveness import mint
from remit_gates._model import Delivery, Outcome, Reason, Record, RunKey
from remit_gates._passage import Denied
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates._refusal import Verbs, refusal
from remit_gates.errors import UsageError
from remit_gates.pydantic_graph._pauses import OPEN, Loaded, Request, judge
from remit_gates.pydantic_graph._stores import opened
from remit_gates.stores._threaded import at_once


VERBS: Final = Verbs(
    go_on="resume it through a gate with Policy(on_failure='retry', on_abandoned='serve')",
    ask="look at load_all()",
    fork="run the node on a persistence of its own",
)

TRIES: Final = 50
"""Reads of a file that is being written, 20 ms apart: pydantic-graph waits as long for one."""

IN_MEMORY: Final = (FullStatePersistence, SimpleStatePersistence)

KEEPS_IDS: Final = (FileStatePersistence, FullStatePersistence, SimpleStatePersistence)
"""Those that are known to give a snapshot the id that it had."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a gate was made with; all of it travels with a pickle.

    Attributes:
        store: What was passed, or a URL that stands for what was inferred.
        policy: The policy.
        namespace: The partition of the store.
        run: The name of the run; None where the history tells it.
        process: Whose memory the claims are in, where the store was inferred as that.
    """

    store: Any
    policy: Policy
    namespace: str
    run: str | None
    process: tuple[str, int, str] | None = None


def here() -> tuple[str, int, str]:
    """This process, among all of all time."""
    holder = mint()
    return holder.host, holder.pid, holder.started


class Binding:
    """The gate of one persistence.

    Args:
        inner: The persistence.
        settings: What the gate was made with.
        mine: Snapshot ids with which runs have begun here, where only this process knows
            of their claims.

    Attributes:
        began: Snapshot id of the node with which a run is about to begin that has no
            snapshot yet.
    """

    def __init__(
        self,
        inner: BaseStatePersistence[Any, Any],
        settings: Settings,
        mine: set[str] | None = None,
    ) -> None:
        if settings.process not in (None, here()):
            raise UsageError(
                f"This gated {type(inner).__name__} comes from another process, and its claims"
                " were in the memory of that one, where nobody here can see them. Pass store="
                " to gate(): a URL, such as sqlite:///claims.db, that all workers share."
            )
        self.inner = inner
        self.settings = settings
        self.store = opened(settings.store)
        self.keeper = Keeper(self.store, settings.policy)
        self.began: str | None = None
        self.mine = set() if mine is None else mine
        self._keeps_ids = type(inner) in KEEPS_IDS
        if isinstance(inner, SimpleStatePersistence) and not held(inner):
            vars(inner).setdefault("_remit_run", uuid.uuid4().hex)

    @property
    def port(self) -> Port:
        """The operations of a flow. Not kept: each of the two would keep the other, and the
        whole history with them, until the garbage collector finds them."""
        return Port(self)

    async def load_all(self) -> list[Any]:
        """The history, as the persistence has it, once nobody is writing it.

        Raises:
            ValidationError: A file does not hold a history, and goes on not to.
        """
        for _ in range(TRIES if isinstance(self.inner, FileStatePersistence) else 0):
            try:
                return await self.inner.load_all()
            except ValidationError:
                # It reads without its lock, and somebody may be writing in place.
                await asyncio.sleep(0.02)
        return await self.inner.load_all()

    async def look(self) -> Loaded:
        """The history, which stays as it is.

        Raises:
            UsageError: It cannot be told which snapshot is which.
        """
        if isinstance(self.inner, SimpleStatePersistence):
            return Loaded(held(self.inner))
        snapshots = await self.load_all()
        if self.settings.process is not None and snapshots and snapshots[0].id not in self.mine:
            raise UsageError(
                "This history did not begin here, so that others may have it as well, and the"
                " claims of this gate are in the memory of this process. Nothing was served."
                " Pass store= to gate(): a URL, such as sqlite:///claims.db, that all share."
            )
        if not self._keeps_ids and snapshots:
            again = await self.inner.load_all()
            if any(one.id != two.id for one, two in zip(snapshots, again, strict=False)):
                raise UsageError(
                    f"{type(self.inner).__name__} gives one snapshot another id each time that"
                    " it is loaded, so nobody can tell whether it was resumed before. Nothing"
                    " was served. Store NodeSnapshot.id, and pass it on as NodeSnapshot(id=…)."
                )
            self._keeps_ids = True
        # The list of a persistence in memory goes on changing.
        return Loaded(tuple(snapshots))

    def run(self, loaded: Loaded, begins: str | None = None) -> RunKey | None:
        """The name of the run, which `begins` with that node if it has no snapshot yet; None
        for a run that has none and does not begin."""
        name = self._given()
        if name is None and isinstance(self.inner, SimpleStatePersistence):
            name = _named(self.inner)
        if name is None and loaded.snapshots:
            name = loaded.snapshots[0].id
        elif name is None and begins is not None:
            # Of two that begin at once, the second must find the first one's claim.
            name = self.began = self.began or begins
        return None if name is None else self._key(name)

    def _given(self) -> str | None:
        """The name of the run, where its history is not needed for that."""
        if self.settings.run is None and isinstance(self.inner, FileStatePersistence):
            return os.path.realpath(self.inner.json_file)
        return self.settings.run

    def _key(self, name: str) -> RunKey:
        return RunKey("pydantic-graph", self.settings.namespace, name)

    def begins_here(self, snapshot: str) -> None:
        """Note the first snapshot of a run."""
        if self.settings.process is not None and not self.mine:
            self.mine.add(snapshot)

    async def admit(self, request: Request) -> ActiveClaim | None:
        """The claim for `request`; None where there is nothing to resume.

        Raises:
            ResumeRefused: The delivery is not served.
            StoreError, OutcomeUnknown, UsageError: As for `Keeper.admit`.
        """
        given = self._given()
        if given is not None:
            run: RunKey | None = self._key(given)
        else:
            run = self.run(await self.look(), request.node)
        if run is None:
            return None
        holder = mint()

        def judged(loaded: Loaded, record: Record) -> Delivery:
            return judge(request, loaded, record, holder, self.keeper.policy)

        result = await adrive(self.keeper.admit(run, holder, judged), self.port)
        while isinstance(result, Denied) and await self._outlived(result):
            result = await adrive(self.keeper.admit(run, holder, judged), self.port)
        if not isinstance(result, Denied):
            return result
        if (
            result.verdict.reason is Reason.NOT_PARKED
            and result.loaded.over
            and request.node is None
            and request.pause is None
        ):
            return None
        raise refusal(result, VERBS)

    async def _outlived(self, denied: Denied) -> bool:
        """Whether the holder that was found dead had given its claim back before it ended."""
        if denied.verdict.reason is not Reason.ABANDONED or denied.verdict.claim is None:
            return False
        snapshot = await self.store.read(denied.run)
        return snapshot.record.claim != denied.verdict.claim

    async def take(self, loaded: Loaded) -> Any:
        """The newest snapshot, as `load_next` gives it; None where somebody without a gate
        was faster."""
        newest = loaded.newest
        if newest.status not in OPEN:
            # There is no way back for a snapshot that has begun: its node gets a new one.
            state, node = self._own((newest.state, newest.node))
            node.set_snapshot_id(fresh_id(node))
            await self.inner.snapshot_node(state, node)
            wanted = node.get_snapshot_id()
        elif newest.status == "pending":
            # Whoever loaded it did not run it.
            return self._own(replace(newest))
        else:
            wanted = newest.id
        # An older one may be on offer still, if a run went on past it with another node.
        while (snapshot := await self.inner.load_next()) is not None:
            if snapshot.id == wanted:
                return copy.deepcopy(snapshot) if await self._keeps(snapshot) else snapshot
        return None

    async def _keeps(self, snapshot: Any) -> bool:
        """Whether the persistence gave what it has itself, as one in memory does up to 1.0."""
        if isinstance(self.inner, FileStatePersistence):
            return False
        return any(snapshot is known for known in (await self.look()).snapshots)

    async def leave(self, claim: ActiveClaim, outcome: Outcome | None) -> None:
        """Give the claim back; see `Keeper.dismiss`."""
        if outcome is None:
            self.began = None
        await adrive(self.keeper.dismiss(claim, outcome), self.port)

    def _own(self, value: Any) -> Any:
        return copy.deepcopy(value) if isinstance(self.inner, IN_MEMORY) else value


class Port(StorePort):
    """The operations of a flow: the store, and a look at the history."""

    def __init__(self, binding: Binding) -> None:
        super().__init__(binding.keeper.store, asyncio.sleep)
        self._binding = binding

    def swap(
        self, run: RunKey, expected: int | None, record: Record, lease: float | None, durable: bool
    ) -> Any:
        """See `Store.swap`. The claim of a run that begins answers nothing, and is there to keep
        others off while it goes on. In a store on this machine it outlives every process
        without waiting for the disk, and if the machine goes down, then so does the run."""
        claim = record.claim
        begins = expected is None and claim is not None and not claim.position
        here = at_once(self.store) is not None
        return super().swap(run, expected, record, lease, durable and not (begins and here))

    async def load(self) -> Loaded:
        return await self._binding.look()


def inferred(inner: BaseStatePersistence[Any, Any]) -> str:
    """URL of the store of `inner`, where it is clear that whoever resumes it sees that one.

    Raises:
        UsageError: It is not.
    """
    if isinstance(inner, FileStatePersistence):
        folder = Path(os.path.realpath(inner.json_file)).parent
        return f"sqlite:///{str(folder / 'remit-gates.db').replace('%', '%25')}"
    if isinstance(inner, IN_MEMORY) and not held(inner):
        return "memory://"
    why = (
        "holds a run already, which others may hold as well"
        if isinstance(inner, IN_MEMORY)
        else "is a persistence of your own, of which gate() does not know the database"
    )
    raise UsageError(
        f"This {type(inner).__name__} {why}. Pass store=: a URL (sqlite:///claims.db,"
        " postgresql://…), a driver connection or pool, or a store that every worker shares."
        " Nothing was wrapped."
    )


def held(inner: Any) -> Sequence[Any]:
    """What a persistence in memory holds."""
    if isinstance(inner, SimpleStatePersistence):
        return () if inner.last_snapshot is None else (inner.last_snapshot,)
    history: Sequence[Any] = inner.history
    return history


def fresh_id(node: Any) -> str:
    """A new snapshot id for `node`, as pydantic-graph makes them."""
    return f"{node.get_node_id()}:{uuid.uuid4().hex}"


def _named(inner: SimpleStatePersistence[Any, Any]) -> str:
    """The name of a run that forgets its first snapshot: its object has one."""
    if "_remit_run" not in vars(inner):
        raise UsageError(
            "This SimpleStatePersistence holds a run that did not begin here, and does not tell"
            " which. Nothing was served. Pass run= to gate()."
        )
    name: str = vars(inner)["_remit_run"]
    return name
