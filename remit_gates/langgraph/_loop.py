"""The hook: a root run of a gated graph carries an entry from its first line to its last.

LangGraph hands a run's config to every call of its saver, so the entry travels there. The
claim is taken inside `get_tuple`, the last point before LangGraph records the answer, and
held until the loop has flushed all that it wrote.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import wrapt
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from remit_gates._claim import ActiveClaim
from remit_gates._drive import adrive, drive
from remit_gates._gate import find_claims_with
from remit_gates._model import Intent, Outcome, Record
from remit_gates._port import StorePort
from remit_gates.langgraph._pauses import Request, waiting
from remit_gates.langgraph._versions import HOOKS, hooked_class, installed


if TYPE_CHECKING:
    from remit_gates.langgraph._binding import Binding
    from remit_gates.langgraph._bound import Bound


ENTRY: Final = "__pregel_remit"
"""Where the entry travels in `configurable`. LangGraph keeps keys with this prefix out of
metadata and streams."""

OPTIONS: Final = "__pregel_remit_options"
"""Where the options of a delivery travel between the call and the loop."""

NAMES: Final = frozenset(("remit_ticket", "remit_delivery", "remit_actor", "remit_fork"))
"""The options of a delivery, as callers write them into `configurable`."""


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

    def outcome(self, error: BaseException | None) -> Outcome:
        """What became of the run, once the loop has exited with `error`."""
        loop = self.loop
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


def install() -> None:
    """Wrap LangGraph's loops, once a process. Runs on other savers go straight through.

    Raises:
        MissingExtra, UnsupportedVersion: It cannot be wrapped. Nothing was.
    """
    with _lock:
        if _installed:
            return
        installed()
        classes = [hooked_class(*hook) for hook in HOOKS]
        wrappers = ((_enter, _exit), (_aenter, _aexit), (_tick,), (_stream, _stream))
        for cls, hook, pair in zip(classes, HOOKS, wrappers, strict=True):
            for method, wrapper in zip(hook[2], pair, strict=True):
                wrapt.wrap_function_wrapper(cls, method, wrapper)
        find_claims_with(claim_in_node)
        _installed.append(True)


_lock = threading.Lock()
_installed: list[bool] = []
_ending: set[asyncio.Task[None]] = set()


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


def _start(loop: Any) -> Entry | None:
    """Give a gated root run its entry, before it asks its saver for anything."""
    if not gated(loop.checkpointer) or loop.is_nested:
        return None
    options: dict[str, Any] = {}
    for config in (loop.config, loop.checkpoint_config):
        conf = config["configurable"]
        options.update(conf.pop(OPTIONS, {}))
        for place in (conf, config.get("metadata") or {}):
            for name in NAMES.intersection(place):
                options[name] = place.pop(name)
    entry = Entry(loop, loop.checkpointer._remit, options)
    for config in (loop.config, loop.checkpoint_config):
        config["configurable"][ENTRY] = entry
    return entry


def _enter(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    entry = _start(loop)
    if entry is None:
        return wrapped(*args, **kwargs)
    try:
        return wrapped(*args, **kwargs)
    except BaseException:
        # LangGraph refused the input: no node ran.
        _dismiss(entry, None)
        raise


def _exit(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    entry = entry_of(loop)
    if entry is None or entry.claim is None:
        return wrapped(*args, **kwargs)
    error = args[1]
    try:
        return wrapped(*args, **kwargs)
    except BaseException as late:
        # A write failed while the loop flushed.
        error = late
        raise
    finally:
        _dismiss(entry, entry.outcome(error))


def _dismiss(entry: Entry, outcome: Outcome | None) -> None:
    if entry.claim is not None:
        keeper = entry.binding.keeper
        drive(keeper.dismiss(entry.claim, outcome), StorePort(entry.binding.store))


async def _aenter(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    entry = _start(loop)
    if entry is None:
        return await wrapped(*args, **kwargs)
    try:
        return await wrapped(*args, **kwargs)
    except BaseException:
        await _whole(_adismiss(entry, None))
        raise


async def _aexit(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    entry = entry_of(loop)
    if entry is None or entry.claim is None:
        return await wrapped(*args, **kwargs)
    error = args[1]
    try:
        return await wrapped(*args, **kwargs)
    except BaseException as late:
        error = late
        raise
    finally:
        await _whole(_aleave(entry, error))


async def _aleave(entry: Entry, error: BaseException | None) -> None:
    # When it is cancelled while it exits, LangGraph goes on flushing in a task, which it
    # hands out as the last argument of the error.
    flushing = error.args[-1] if isinstance(error, asyncio.CancelledError) and error.args else None
    if isinstance(flushing, asyncio.Task):
        await asyncio.wait([flushing])
    await _adismiss(entry, entry.outcome(error))


async def _adismiss(entry: Entry, outcome: Outcome | None) -> None:
    if entry.claim is not None:
        keeper = entry.binding.keeper
        port = StorePort(entry.binding.astore, asyncio.sleep)
        await adrive(keeper.dismiss(entry.claim, outcome), port)


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Await `work`; when cancelled meanwhile, let it go on by itself."""
    task = asyncio.ensure_future(work)
    _ending.add(task)
    task.add_done_callback(_ending.discard)
    await asyncio.shield(task)


def _tick(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Begin a superstep only while the claim is held. LangGraph writes in the background,
    so that a stale winner would otherwise run a node more before its writes fail."""
    entry = loop.config["configurable"].get(ENTRY)
    if (
        isinstance(entry, Entry)
        and entry.claim is not None
        and (loop.is_nested or entry.loop is loop)
    ):
        entry.claim.check()
    return wrapped(*args, **kwargs)


def _stream(wrapped: Callable[..., Any], graph: Any, args: Any, kwargs: Any) -> Any:
    """Keep the options of a delivery out of the metadata that traces get."""
    if not gated(graph.checkpointer):
        return wrapped(*args, **kwargs)
    # What is in the graph's own config reaches the metadata of each of its runs.
    own, options = _apart(graph.config, {})
    if options:
        wrapped = getattr(graph.copy(update={"config": own}), wrapped.__name__)
    config, given = _apart(args[1] if len(args) > 1 else kwargs.get("config"), options)
    if given:
        if len(args) > 1:
            args = (args[0], config, *args[2:])
        else:
            kwargs = {**kwargs, "config": config}
    return wrapped(*args, **kwargs)


def _apart(config: Any, others: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A copy of `config` with the options of a delivery, and `others`, where nobody looks;
    and those that were in it."""
    out: dict[str, Any] = dict(config or {})
    options: dict[str, Any] = {}
    for place in ("configurable", "metadata"):
        found = out[place] = dict(out.get(place) or {})
        for name in NAMES.intersection(found):
            options[name] = found.pop(name)
    out["configurable"][OPTIONS] = {**others, **options}
    return out, options


def gated(saver: Any) -> bool:
    """Whether `saver` came from `gate()`."""
    return hasattr(type(saver), "_remit")
