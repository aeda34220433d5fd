"""The hook: a gated flow is claimed at the entry of `resume_async`, before any event, model
call, method or write, and its claim is held until CrewAI is done.

Flows whose persistence is not gated go straight through.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NoReturn

import wrapt
from crewai.flow.async_feedback.types import HumanFeedbackPending

from remit_gates._drive import adrive
from remit_gates._gate import find_claims_with
from remit_gates._keeper import ActiveClaim, Keeper
from remit_gates._model import Outcome
from remit_gates._ops import Flow
from remit_gates.crewai._pauses import (
    Request,
    judge_kickoff,
    judge_restored,
    pause_of,
)
from remit_gates.crewai._persistence import (
    Binding,
    Entry,
    FlowPort,
    GatedPersistence,
    entered,
    entry_of,
    missed,
)
from remit_gates.crewai._versions import HOOKED, hooked_class, installed
from remit_gates.errors import GateNotEngaged, StoreError


OPTIONS: Final = ("remit_ticket", "remit_delivery", "remit_actor")
"""The options of a delivery, as keyword arguments of `resume` and `resume_async`."""

RESTORED: Final = "_remit_restored"
"""Where an instance that was restored from a checkpoint says from which."""

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
        installed()
        cls = hooked_class()
        for name in HOOKED:
            wrapt.wrap_function_wrapper(cls, name, _WRAPPERS[name])
        find_claims_with(_claim_here)
        _installed.append(True)


_lock = threading.Lock()
_installed: list[bool] = []


def binding_of(flow: Any) -> Binding | None:
    """The gate of `flow`; None if its persistence is not gated."""
    persistence = getattr(flow, "persistence", None)
    if not isinstance(persistence, GatedPersistence):
        return None
    found: Binding = persistence._self_binding
    return found


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
    return await _under(binding.admit_answer(request), binding.keeper, port, call)


def _feedback(feedback: Any = "") -> Any:
    """The feedback, as `resume_async` takes it."""
    return feedback


async def _answered(binding: Binding, run: str, *, inline: bool) -> None:
    """Say of an instance without a pause that another caller has answered it."""

    def look() -> Exception | None:
        waits = binding.inner.load_pending_feedback(run) is not None
        return None if waits else binding.late(run)

    error = look() if inline else await asyncio.to_thread(look)
    if error is not None:
        raise error


def _kickoff_async(wrapped: Callable[..., Any], flow: Any, args: Any, kwargs: Any) -> Any:
    """Claim what goes on with a run: a restored checkpoint, and under `scope="run"` a
    kickoff of a run by its id."""
    binding = binding_of(flow)
    given = {} if binding is None else _bound(wrapped, args, kwargs)
    # A stream, and a checkpoint that is given here, call this once more.
    if binding is None or flow.stream or getattr(given["from_checkpoint"], "restore_from", None):
        return wrapped(*args, **kwargs)
    call = partial(wrapped, *args, **kwargs)
    checkpoint = getattr(flow, RESTORED, None)
    if checkpoint is not None:
        return _restored(binding, flow, checkpoint, call)
    run = (given["inputs"] or {}).get("id")
    if (
        binding.policy.scope != "run"
        or run is None
        or given["restore_from_state_id"] is not None
        or entry_of(run) is not None
    ):
        return call()
    admitting = binding.admit(str(run), judge_kickoff, restored=False)
    return _under(admitting, binding.keeper, FlowPort(binding, inline=False), call)


async def _restored(binding: Binding, flow: Any, checkpoint: str, call: Callable[[], Any]) -> Any:
    made = partial(judge_restored, checkpoint)
    admitting = binding.admit(str(flow.flow_id), made, restored=True)
    port = FlowPort(binding, inline=False)
    return await _under(admitting, binding.restorer, port, call, partial(_forget, flow))


def _bound(call: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    bound = inspect.signature(call).bind_partial(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


async def _under(
    admitting: Flow[Entry],
    keeper: Keeper,
    port: FlowPort,
    call: Callable[[], Any],
    after: Callable[[], None] = lambda: None,
) -> Any:
    """What `call` returns, run under the claim that is admitted.

    Raises:
        ResumeRefused: There is none; nothing was called.
    """
    entry = await adrive(admitting, port)
    token = entered.set(entry)
    try:
        result = await call()
    except BaseException as error:
        await adrive(keeper.dismiss(entry.claim, _failure(entry, error)), port)
        if entry.lost not in (None, error) and isinstance(error, Exception):
            raise entry.lost from error
        raise
    else:
        await adrive(keeper.dismiss(entry.claim, _outcome(result)), port)
        return result
    finally:
        entry.ended = True
        after()
        entered.reset(token)


def _failure(entry: Entry, error: BaseException) -> Outcome | None:
    """What a run that ended with `error` comes to: nothing, if its pause waits still."""
    answers = entry.claim.passage.delivery.answers
    kept = any(answer.pause.startswith("checkpoint:") for answer in answers) or not answers
    if not entry.committed and not kept:
        return None
    return Outcome("failed", detail=type(error).__name__)


def _outcome(result: Any) -> Outcome:
    if isinstance(result, HumanFeedbackPending):
        return Outcome("parked", waiting=(pause_of(result.context),))
    return Outcome("finished")


def _from_pending(wrapped: Callable[..., Any], cls: Any, args: Any, kwargs: Any) -> Any:
    """Say of a pause that is gone what became of it, where CrewAI says that there is none."""
    token = missed.set(None)
    try:
        return wrapped(*args, **kwargs)
    except ValueError as error:
        found = missed.get()
        if found is None:
            raise
        _tell_late(*found, error)
    finally:
        missed.reset(token)


def _tell_late(binding: Binding, run: str, error: ValueError) -> NoReturn:
    try:
        late = binding.late(run)
    except StoreError:
        # Nobody can say more than CrewAI does.
        raise error from None
    if late is None:
        raise error
    raise late from error


def _from_checkpoint(wrapped: Callable[..., Any], cls: Any, args: Any, kwargs: Any) -> Any:
    flow = wrapped(*args, **kwargs)
    if binding_of(flow) is not None:
        from crewai.state.provider.utils import detect_provider

        config = args[0] if args else kwargs["config"]
        location = str(config.restore_from)
        object.__setattr__(flow, RESTORED, detect_provider(location).extract_id(location))
    return flow


def _fork(wrapped: Callable[..., Any], cls: Any, args: Any, kwargs: Any) -> Any:
    """A fork has an id of its own, and leaves its checkpoint to whoever else restores it."""
    flow = wrapped(*args, **kwargs)
    _forget(flow)
    return flow


def _forget(flow: Any) -> None:
    if getattr(flow, RESTORED, None) is not None:
        object.__setattr__(flow, RESTORED, None)


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
    "kickoff_async": _kickoff_async,
    "from_pending": _from_pending,
    "from_checkpoint": _from_checkpoint,
    "fork": _fork,
}
