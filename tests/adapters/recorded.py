"""A persistence that remembers what CrewAI asked of it, and fails or does something else
just before when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crewai.flow.persistence import SQLiteFlowPersistence
from pydantic import PrivateAttr


class Recorded(SQLiteFlowPersistence):
    """Calls are `(method, the method of the flow if there is one)`."""

    _calls: list[tuple[str, str]] = PrivateAttr(default_factory=list)
    _before: dict[str, Callable[[], Any]] = PrivateAttr(default_factory=dict)

    @property
    def calls(self) -> list[tuple[str, str]]:
        return self._calls

    def before(self, call: str, what: Callable[[], Any]) -> None:
        """Do `what` once, before the next `call`."""
        self._before[call] = what

    def _record(self, call: str, method: str = "") -> None:
        self._calls.append((call, method))
        self._before.pop(call, lambda: None)()

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        self._record("save_state", method_name)
        super().save_state(flow_uuid, method_name, state_data)

    def load_state(self, flow_uuid: str) -> Any:
        self._record("load_state")
        return super().load_state(flow_uuid)

    def save_pending_feedback(self, flow_uuid: str, context: Any, state_data: Any) -> None:
        self._record("save_pending", context.method_name)
        super().save_pending_feedback(flow_uuid, context, state_data)

    def load_pending_feedback(self, flow_uuid: str) -> Any:
        self._record("load_pending")
        return super().load_pending_feedback(flow_uuid)

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        self._record("clear_pending")
        super().clear_pending_feedback(flow_uuid)
