"""The hook into kickoffs that go on with a run: of a restored checkpoint, and under
`scope="run"` of a run by its id. All others go straight through."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from remit_gates.crewai._binding import Binding, FlowPort
from remit_gates.crewai._pauses import judge_kickoff, judge_restored
from remit_gates.crewai._persistence import binding_of
from remit_gates.crewai._run import entry_of, under


RESTORED: Final = "_remit_restored"
"""Where an instance that was restored from a checkpoint says from which."""


def kickoff_async(wrapped: Callable[..., Any], flow: Any, args: Any, kwargs: Any) -> Any:
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
    return under(admitting, binding.keeper, FlowPort(binding, inline=False), call)


async def _restored(binding: Binding, flow: Any, checkpoint: str, call: Callable[[], Any]) -> Any:
    made = partial(judge_restored, checkpoint)
    admitting = binding.admit(str(flow.flow_id), made, restored=True)
    port = FlowPort(binding, inline=False)
    return await under(admitting, binding.restorer, port, call, partial(_forget, flow))


def _bound(call: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    bound = inspect.signature(call).bind_partial(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def from_checkpoint(wrapped: Callable[..., Any], cls: Any, args: Any, kwargs: Any) -> Any:
    flow = wrapped(*args, **kwargs)
    if binding_of(flow) is not None:
        from crewai.state.provider.utils import detect_provider

        config = args[0] if args else kwargs["config"]
        location = str(config.restore_from)
        object.__setattr__(flow, RESTORED, detect_provider(location).extract_id(location))
    return flow


def fork(wrapped: Callable[..., Any], cls: Any, args: Any, kwargs: Any) -> Any:
    """A fork has an id of its own, and leaves its checkpoint to whoever else restores it."""
    flow = wrapped(*args, **kwargs)
    _forget(flow)
    return flow


def _forget(flow: Any) -> None:
    if getattr(flow, RESTORED, None) is not None:
        object.__setattr__(flow, RESTORED, None)
