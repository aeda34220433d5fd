"""What `import remit_gates` offers is written down once, sorted, and is all there is."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import remit_gates
from remit_gates import errors


MODULES = ["remit_gates", "remit_gates.stores", "remit_gates.testing"]
if importlib.util.find_spec("starlette") is not None:
    MODULES += ["remit_gates.http", "remit_gates.http.slack"]


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_has_no_name_twice(name: str) -> None:
    exported = importlib.import_module(name).__all__

    assert list(exported) == sorted(set(exported))


@pytest.mark.parametrize("name", MODULES)
def test_all_is_written_out(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))

    written = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    ]

    assert written == [list(module.__all__)]


@pytest.mark.parametrize("name", MODULES)
def test_all_is_every_public_name_and_each_can_be_had(name: str) -> None:
    module = importlib.import_module(name)

    assert _public(module) <= set(module.__all__)
    assert [exported for exported in module.__all__ if not hasattr(module, exported)] == []


def test_every_error_is_exported_and_belongs_to_the_tree() -> None:
    tree = {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and kind.__module__ == errors.__name__
    }

    assert all(issubclass(kind, errors.RemitError) for kind in tree.values())
    assert set(tree) <= set(remit_gates.__all__)


def _public(module: ModuleType) -> set[str]:
    """The names that are `module`'s own to give, not what it needs itself: those that it
    defines, and at the top also those that it gathers from below."""
    below = "remit_gates." if module is remit_gates else module.__name__
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "").startswith(below)
    }
