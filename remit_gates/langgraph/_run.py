"""What the gate knows of one root run of a graph, and how whoever is called within it finds it:
LangGraph hands a run's config to every call of its saver, so the entry travels there."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from remit_gates._claim import ActiveClaim
from remit_gates._model import Intent, Outcome, Record
from remit_gates.langgraph._pauses import Request, waiting


if TYPE_CHECKING:
    from remit_gates.langgraph._binding import Binding
    from remit_gates.langgraph._bound import Bound


ENTRY: Final = "__pregel_remit"
"""Where the entry travels in `configurable`. LangGraph keeps keys with this prefix out of
metadata and streams."""


class Entry:
    """What the gate knows of one root run of a graph, from enter to exit.

    It does not keep that run alive: its loop has the entry in its config, and the two of them
    would lie about, with all of the run's state, until the garbage collector finds them.

    Attributes:
        binding: The gate of its saver.
        options: The options of this delivery.
        claim: The claim, once granted; None for a run that needs none.
        judged: Whether the saver has been asked for the run's checkpoint already.
        again: See `Prepared.again`.
        bound: What its ticket binds it to, if it has one.
    """

    __slots__ = ("_loop", "again", "binding", "bound", "claim", "judged", "options")

    def __init__(self, loop: Any, binding: Binding, options: dict[str, Any]) -> None:
        self._loop = weakref.ref(loop)
        self.binding = binding
        self.options = options
        self.claim: ActiveClaim | None = None
        self.judged = False
        self.again: frozenset[str] = frozenset()
        self.bound: Bound | None = None

    @property
    def loop(self) -> Any:
        """LangGraph's loop of the run; None once it is over and gone."""
        return self._loop()

    def __copy__(self) -> Entry:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Entry:
        return self

    def request(self, ordinal: bool) -> Request:
        """The call that started this run, as its input and config tell it."""
        loop = self.loop
        conf = loop.checkpoint_config["configurable"]
        command = loop.input if isinstance(loop.input, Command) else None
        resume = None if command is None else command.resume
        intent = Intent.START
        named = None
        if resume is not None:
            named = resume if _by_id(resume) else None
            # An empty map answers nothing, and LangGraph asks again.
            intent = Intent.CONTINUE if named == {} else Intent.ANSWER
        elif loop.input is None or command is not None:
            intent = Intent.CONTINUE
        return Request(
            run=str(conf["thread_id"]),
            intent=intent,
            named=named or None,
            bare=None if named else resume,
            checkpoint=conf.get("checkpoint_id"),
            fork=bool(self.options.get("remit_fork")),
            breakpoints=bool(loop.interrupt_before or loop.interrupt_after),
            delivery=self.options.get("remit_delivery"),
            actor=self.options.get("remit_actor"),
            ordinal=ordinal,
            recorded=self.binding.keeper.policy.record_answers,
        )

    def answer_by_id(self, interrupt: str) -> None:
        """Have LangGraph give the bare answer of this run to one interrupt alone."""
        bare = self.loop.input
        self.loop.input = replace(bare, resume={interrupt: bare.resume})

    def reenters(self, parked: Any) -> bool:
        """Whether LangGraph takes new input for a continue, because the run that left
        `parked` had the run id of this one's metadata."""
        return parked is not None and self._run_id == parked.metadata.get("run_id")

    @property
    def has_run_id(self) -> bool:
        """Whether its metadata has a run id at all."""
        return self._run_id is not None

    @property
    def _run_id(self) -> Any:
        return (self.loop.config.get("metadata") or {}).get("run_id")

    def outcome(self, loop: Any, error: BaseException | None) -> Outcome:
        """What became of the run, once `loop`, its loop, has exited with `error`."""
        position = loop.checkpoint["id"]
        if error is not None and not isinstance(error, GraphInterrupt):
            return Outcome("failed", position, detail=type(error).__name__)
        if loop.status == "out_of_steps":
            return Outcome("failed", position, detail="GraphRecursionError")
        if error is None and loop.status == "done":
            return Outcome("finished", position)
        waits = waiting(
            position, loop.checkpoint_pending_writes, Record(), ordinal=self.binding.ordinal
        )
        return Outcome("parked", position, tuple(wait.pause for wait in waits))


def _by_id(resume: Any) -> bool:
    """Whether LangGraph takes `resume` for answers by interrupt id, which are 32 hex digits."""
    return isinstance(resume, dict) and all(
        isinstance(key, str) and len(key) == 32 and set(key) <= set("0123456789abcdef")
        for key in resume
    )


def claim_in_node(config: Any = None) -> ActiveClaim | None:
    """The claim of the run in whose node the caller is, or whose config it has."""
    return claim_of(config or var_child_runnable_config.get() or {})


def claim_of(config: Any) -> ActiveClaim | None:
    """The claim of the run that `config` belongs to, if it has one."""
    entry = config.get("configurable", {}).get(ENTRY)
    return entry.claim if isinstance(entry, Entry) else None


def entry_of(loop: Any) -> Entry | None:
    """The entry with which `loop` was entered; None if it is not a gated root run."""
    entry = loop.config["configurable"].get(ENTRY)
    return entry if isinstance(entry, Entry) and entry.loop is loop else None
