"""`validate=`: a state that does not fit is refused before it is persisted.

What is checked is what a checkpoint holds: fields that no node has written yet are
absent, which is not an error, and LangGraph's own channels are not part of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from remit_gates.errors import InvalidState, MissingExtra, UsageError


def checker(validate: Any) -> Callable[[Any, Any], None] | None:
    """What `validate` says, as a function of a config and a checkpoint.

    Raises:
        UsageError: It is neither a pydantic model, a TypedDict nor callable.
        MissingExtra: It needs pydantic, which is not installed.
    """
    if validate is None:
        return None
    problems = _problems(validate)

    def check(config: Any, checkpoint: Any) -> None:
        values = checkpoint["channel_values"]
        state = {key: values[key] for key in values if ":" not in key and not key.startswith("__")}
        found = problems(state)
        if found:
            thread = config["configurable"].get("thread_id")
            raise InvalidState(
                f"Thread {thread!r}: a state does not fit validate= and was not persisted:"
                f" {'; '.join(found)}. The thread stands where it stood before. Mend the node"
                " that wrote it; where its write is pending already, write what fits in its"
                " place with graph.update_state(config, {...}, as_node=...)."
            )

    return check


def _problems(validate: Any) -> Callable[[Mapping[str, Any]], list[str]]:
    typed = isinstance(validate, type) and (
        hasattr(validate, "model_fields") or hasattr(validate, "__required_keys__")
    )
    if not typed:
        if not callable(validate):
            raise UsageError(
                f"validate={validate!r}: pass a pydantic model, a TypedDict, or a function of"
                " the state that raises. Nothing was wrapped."
            )

        def called(state: Mapping[str, Any]) -> list[str]:
            try:
                validate(dict(state))
            except Exception as error:  # noqa: BLE001 -- it says what does not fit
                return [f"{type(error).__name__}: {error}"]
            return []

        return called
    try:
        from pydantic import TypeAdapter, ValidationError
    except ImportError:
        raise MissingExtra(
            "validate= with a model or TypedDict needs pydantic: pip install pydantic"
        ) from None
    adapter = TypeAdapter(validate)

    def fitted(state: Mapping[str, Any]) -> list[str]:
        try:
            adapter.validate_python(dict(state))
        except ValidationError as error:
            return [
                f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}"
                for found in error.errors(include_input=False, include_url=False)
                if not (found["type"] == "missing" and len(found["loc"]) == 1)
            ]
        return []

    return fitted
