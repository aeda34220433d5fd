"""A gated persistence is the persistence that it was made from, plus the gate. What a run
under a claim writes goes through only while the claim is held, and clearing its pause is
the point after which an answer is consumed for good.

It is a proxy: CrewAI takes it for the wrapped object, which stays as it is.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import wrapt

from remit_gates.crewai._binding import Binding, missed
from remit_gates.crewai._run import entry_of
from remit_gates.errors import GateNotEngaged, UsageError


class PausedId(str):
    """A flow id that came with a pause. CrewAI hands it back when it clears the pause.

    Attributes:
        binding: The gate of the persistence that the pause is in.
    """

    __slots__ = ("binding",)

    binding: Binding

    @classmethod
    def of(cls, run: str, binding: Binding) -> PausedId:
        """`run`, of a pause behind `binding`."""
        made = cls(run)
        made.binding = binding
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> PausedId:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Nowhere else is it more than the id.
        return str, (str(self),)


class GatedPersistence(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A persistence behind a gate; see the module."""

    def __init__(self, inner: Any, binding: Binding, source: Any) -> None:
        super().__init__(inner)
        self._self_binding = binding
        self._self_source = source

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        """Save, while the claim is held if the run has one."""
        _fence(flow_uuid)
        self.__wrapped__.save_state(
            flow_uuid=flow_uuid, method_name=method_name, state_data=state_data
        )

    def save_pending_feedback(self, flow_uuid: str, context: Any, state_data: Any) -> None:
        """Save, while the claim is held if the run has one."""
        _fence(flow_uuid)
        self.__wrapped__.save_pending_feedback(
            flow_uuid=flow_uuid, context=context, state_data=state_data
        )
        # The instance that paused may be resumed without loading anything.
        context.flow_id = PausedId.of(context.flow_id, self._self_binding)

    def load_pending_feedback(self, flow_uuid: str) -> Any:
        """Load. Looking never consumes."""
        found = self.__wrapped__.load_pending_feedback(flow_uuid)
        if found is None:
            missed.set((self._self_binding, str(flow_uuid)))
            return None
        state, context = found
        paused = PausedId.of(context.flow_id, self._self_binding)
        return state, dataclasses.replace(context, flow_id=paused)

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Clear, while the claim is held: from here on the answer stays consumed."""
        entry = entry_of(flow_uuid)
        if entry is None:
            if isinstance(flow_uuid, PausedId):
                raise GateNotEngaged(
                    f"Flow {str(flow_uuid)!r} goes on from its pause, but the gate's hook into"
                    " Flow.resume_async did not run, so it could not be claimed. No listener"
                    " ran. Either another object wraps the gated persistence, and gate() must"
                    " be outermost; or something replaced the hook."
                )
            # Somebody gives the pause up by hand.
            self.__wrapped__.clear_pending_feedback(flow_uuid)
            return
        entry.fence()
        entry.committed = True
        try:
            self.__wrapped__.clear_pending_feedback(str(flow_uuid))
        except BaseException:
            # CrewAI runs no listener after this, so if the row is there it may be answered.
            entry.committed = False
            raise

    def __copy__(self) -> GatedPersistence:
        return self._remade(copy.copy(self.__wrapped__))

    def __deepcopy__(self, memo: dict[int, Any]) -> GatedPersistence:
        return self._remade(copy.deepcopy(self.__wrapped__, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        from remit_gates.crewai import _regated

        binding = self._self_binding
        if self._self_source is not None and not isinstance(self._self_source, str):
            raise UsageError(
                "A gated persistence can be pickled when its store is named by a URL, or found"
                " in the persistence. Pass store= as a URL. Nothing was pickled."
            )
        options = (binding.policy, binding.namespace, binding.secret or None)
        return _regated, (self.__wrapped__, self._self_source, *options)

    def _remade(self, inner: Any) -> GatedPersistence:
        binding = copy.copy(self._self_binding)
        binding.inner = inner
        return GatedPersistence(inner, binding, self._self_source)


def _fence(run: Any) -> None:
    entry = entry_of(run)
    if entry is not None:
        entry.fence()


def binding_of(flow: Any) -> Binding | None:
    """The gate of `flow`; None if its persistence is not gated."""
    persistence = getattr(flow, "persistence", None)
    if not isinstance(persistence, GatedPersistence):
        return None
    found: Binding = persistence._self_binding
    return found
