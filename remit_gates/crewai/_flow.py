"""The hook: a gated flow is claimed at the entry of `resume_async`, before any event, model
call, method or write, and its claim is held until CrewAI is done.

Flows whose persistence is not gated go straight through.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import wrapt

from remit_gates._claim import ActiveClaim
from remit_gates._gate import find_claims_with
from remit_gates.crewai._binding import Binding, FlowPort, missed
from remit_gates.crewai._kickoffs import fork, from_checkpoint, kickoff_async
from remit_gates.crewai._pauses import Request, pause_of
from remit_gates.crewai._persistence import GatedPersistence, binding_of
from remit_gates.crewai._run import entered, under
from remit_gates.crewai._versions import HOOKED, hooked
from remit_gates.errors import GateNotEngaged, ResumeRefused, StoreError


OPTIONS: Final = ("remit_ticket", "remit_delivery", "remit_actor")
"""The options of a delivery, as keyword arguments of `resume` and `resume_async`."""

_given: ContextVar[tuple[Any, dict[str, Any]] | None] = ContextVar(
    "remit_gates_crewai_given", default=None
)
"""The flow whose sync `resume` is running, with the options that it was given."""


def install() -> None:
    """Wrap CrewAI's `Flow`, once a process.

    Raises:
        MissingExtra, UnsupportedVersion: It cannot be wrapped. Nothing was.
    """
    with _lock:
        if _installed:
            return
        cls = hooked()
        for name in HOOKED:
            wrapt.wrap_function_wrapper(cls, name, _WRAPPERS[name])
        find_claims_with(_claim_here)
        _installed.append(True)


_lock = threading.Lock()
_installed: list[bool] = []


def _claim_here() -> ActiveClaim | None:
    entry = entered.get()
    return None if entry is None or entry.ended else entry.claim


def _resume(wrapped: Callable[..., Any], flow: Any, args: Any, kwargs: Any) -> Any:
    """Carry the options to `resume_async`, which runs on an event loop of its own."""
    if binding_of(flow) is None:
        return wrapped(*args, **kwargs)
    kwargs, options = _apart(kwargs)
    token = _given.set((flow, options))
    try:
        return wrapped(*args, **kwargs)
    finally:
        _given.reset(token)


def _resume_async(wrapped: Callable[..., Any], flow: Any, args: Any, kwargs: Any) -> Any:
    binding = binding_of(flow)
    if binding is not None:
        return _resumed(binding, wrapped, flow, args, kwargs)
    if _declares_gate(flow):
        raise GateNotEngaged(
            f"{type(flow).__name__} is declared with a gated persistence, but this instance of"
            " it uses one that is not gated, so it could not be claimed. Nothing was served."
            " Pass a gated one to from_pending(), or have set_flow_persistence_factory() return"
            " one."
        )
    return wrapped(*args, **kwargs)


async def _resumed(
    binding: Binding, wrapped: Callable[..., Any], flow: Any, args: Any, kwargs: Any
) -> Any:
    kwargs, options = _apart(kwargs)
    given = _given.get()
    inline = given is not None and given[0] is flow
    if given is not None and inline:
        options = {**given[1], **options}
        # What its listeners resume has a loop, and options, of its own.
        _given.set(None)
    port = FlowPort(binding, inline=inline)
    context = flow._pending_feedback_context
    if context is None:
        await _answered(binding, flow.flow_id, inline=inline)
        return await wrapped(*args, **kwargs)
    run = str(context.flow_id)
    ticket = options.get("remit_ticket")
    request = Request(
        run=run,
        pause=pause_of(context),
        answer=_feedback(*args, **kwargs),
        ticket=None if ticket is None else binding.named(ticket, run),
        delivery=options.get("remit_delivery"),
        actor=options.get("remit_actor"),
    )
    call = partial(wrapped, *args, **kwargs)
    return await under(binding.admit_answer(request), binding.keeper, port, call)


def _feedback(feedback: Any = "") -> Any:
    """The feedback, as `resume_async` takes it."""
    return feedback


async def _answered(binding: Binding, run: str, *, inline: bool) -> None:
    """Say of an instance without a pause that another caller has answered it."""

    def look() -> Exception | None:
        waits = binding.inner.load_pending_feedback(run) is not None
        return None if waits else binding.late(run)

    late = look() if inline else await asyncio.to_thread(look)
    if late is not None:
        try:
            raise late
        finally:
            # Its traceback leads here: together they would keep the flow for a while.
            del late


def _from_pending(wrapped: Callable[..., Any], cls: Any, args: Any, kwargs: Any) -> Any:
    """Say of a pause that is gone what became of it, where CrewAI says that there is none."""
    token = missed.set(None)
    try:
        return wrapped(*args, **kwargs)
    except ValueError as error:
        found = missed.get()
        late = None if found is None else _late(*found)
        if late is None:
            raise
        try:
            raise late from error
        finally:
            del late  # as above
    finally:
        missed.reset(token)


def _late(binding: Binding, run: str) -> ResumeRefused | None:
    """What became of the pause of `run`; None where nobody can say more than CrewAI does."""
    with suppress(StoreError):
        return binding.late(run)
    return None


def _apart(kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that are CrewAI's, and the options of the delivery."""
    options: dict[str, Any] = {name: kwargs[name] for name in OPTIONS if name in kwargs}
    return {name: kwargs[name] for name in kwargs if name not in OPTIONS}, options


def _declares_gate(flow: Any) -> bool:
    """Whether the flow's class, or a method of it, was given a gated persistence."""
    definition = flow._definition
    declared = [definition, *definition.methods.values()]
    found = (getattr(part.persist, "persistence", None) for part in declared)
    return any(isinstance(persistence, GatedPersistence) for persistence in found)


_WRAPPERS: Final = {
    "resume": _resume,
    "resume_async": _resume_async,
    "kickoff_async": kickoff_async,
    "from_pending": _from_pending,
    "from_checkpoint": from_checkpoint,
    "fork": fork,
}
