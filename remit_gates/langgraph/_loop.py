"""The hook: a root run of a gated graph carries an entry from its first line to its last.

LangGraph hands a run's config to every call of its saver, so the entry travels there. The
claim is taken inside `get_tuple`, the last point before LangGraph records the answer, and
held until the loop has flushed all that it wrote.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

import wrapt

from remit_gates._drive import adrive, drive
from remit_gates._gate import find_claims_with
from remit_gates._model import Outcome
from remit_gates._port import StorePort
from remit_gates.langgraph._run import ENTRY, Entry, claim_in_node, entry_of
from remit_gates.langgraph._versions import HOOKS, hooked


OPTIONS: Final = "__pregel_remit_options"
"""Where the options of a delivery travel between the call and the loop."""

NAMES: Final = frozenset(("remit_ticket", "remit_delivery", "remit_actor", "remit_fork"))
"""The options of a delivery, as callers write them into `configurable`."""


def install() -> None:
    """Wrap LangGraph's loops, once a process. Runs on other savers go straight through.

    Raises:
        MissingExtra, UnsupportedVersion: It cannot be wrapped. Nothing was.
    """
    with _lock:
        if _installed:
            return
        classes = hooked()
        wrappers = ((_enter, _exit), (_aenter, _aexit), (_tick,), (_stream, _stream))
        for cls, hook, pair in zip(classes, HOOKS, wrappers, strict=True):
            for method, wrapper in zip(hook[2], pair, strict=True):
                wrapt.wrap_function_wrapper(cls, method, wrapper)
        find_claims_with(claim_in_node)
        _installed.append(True)


_lock = threading.Lock()
_installed: list[bool] = []
_ending: set[asyncio.Task[None]] = set()


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
        _dismiss(entry, entry.outcome(loop, error))


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
        await _whole(_aleave(entry, loop, error))


async def _aleave(entry: Entry, loop: Any, error: BaseException | None) -> None:
    # When it is cancelled while it exits, LangGraph goes on flushing in a task, which it
    # hands out as the last argument of the error.
    flushing = error.args[-1] if isinstance(error, asyncio.CancelledError) and error.args else None
    if isinstance(flushing, asyncio.Task):
        await asyncio.wait([flushing])
    await _adismiss(entry, entry.outcome(loop, error))


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
