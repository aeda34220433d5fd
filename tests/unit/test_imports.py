"""Importing remit-gates loads no framework and no driver: those are the user's to import."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


LOADED = """
import importlib, json, sys
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def loaded(module: str) -> set[str]:
    """The top-level modules that importing `module` loads in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, module], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "module", ["remit_gates", "remit_gates.stores", "remit_gates.testing", "remit_gates.cli"]
)
def test_no_third_party_but_wrapt(module: str) -> None:
    third_party = loaded(module) - sys.stdlib_module_names - {"remit_gates", "wrapt"}

    assert third_party == set()


@pytest.mark.parametrize("framework", ["crewai", "langgraph"])
def test_an_adapter_names_the_extra_that_it_misses(framework: str) -> None:
    code = f"import sys; sys.modules[{framework!r}] = None; import remit_gates.{framework}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "MissingExtra: " in done.stderr
    assert f"pip install 'remit-gates[{framework}]'" in done.stderr


@pytest.mark.parametrize("module", ["remit_gates", "remit_gates.stores"])
def test_no_driver_not_even_of_the_standard_library(module: str) -> None:
    assert not loaded(module) & {"sqlite3", "_sqlite3"}


def test_the_probe_sees_what_a_module_loads() -> None:
    assert {"sqlite3", "_sqlite3"} <= loaded("sqlite3")
