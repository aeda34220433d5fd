"""Every driver whose framework is installed here speaks the protocol, stock and gated."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remit_gates.contract._envs import import_path
from remit_gates.contract._frameworks import FRAMEWORKS, requirements
from remit_gates.contract._line import Line, Target
from remit_gates.contract.drivers._kit import ledger


MODULES = {
    "autogen-agentchat": "autogen_agentchat",
    "crewai": "crewai",
    "langgraph": "langgraph",
    "llama-index-workflows": "workflows",
    "pydantic-ai": "pydantic_ai",
    "pydantic-graph": "pydantic_graph",
    "reference": "json",
}


def test_every_driver_is_put_to_the_test() -> None:
    assert MODULES.keys() == FRAMEWORKS.keys()


@pytest.fixture(params=sorted(MODULES))
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    about = FRAMEWORKS[request.param]
    if importlib.util.find_spec(MODULES[request.param]) is None:
        pytest.skip(f"{request.param} is not installed here; remit-gates contract installs it")
    backend = next(each for each in about.usual if each not in about.one_process)
    with import_path() as path:
        target = Target(about.driver, sys.executable, backend, forks=about.forks, path=(path,))
        with closing(Line(target, tmp_path)) as line:
            yield line


def done(line: Line, verb: str, **details: Any) -> dict[str, Any]:
    """What the order comes to; it must be carried out."""
    reply = line.order(verb, **details).wait()
    assert reply["outcome"] == "ok", reply
    value: dict[str, Any] = reply["value"]
    return value


@pytest.mark.parametrize("column", ["stock", "gated"])
def test_a_run_parks_is_answered_and_ends(line: Line, column: str) -> None:
    described = done(line, "describe")
    if column == "gated" and described.get("gate"):
        pytest.skip(described["gate"])
    gated = column == "gated"
    about: dict[str, Any] = {"run": "run-1", "program": "twice", "gated": gated}
    line.order("setup", **about).wait()
    assert done(line, "state", **about)["status"] == "absent"

    first = done(line, "start", **about)
    assert (first["status"], first["asks"]) == ("parked", ["ask"])
    answer = {"value": "yes", "delivery": "d1", "handle": first["handle"]}
    second = done(line, "answer", **about, **answer)
    assert (second["status"], second["asks"]) == ("parked", ["ask2"])
    answer = {"value": "no", "delivery": "d2", "handle": second["handle"]}
    last = done(line, "answer", **about, **answer)
    assert (last["status"], last["asks"]) == ("finished", [])
    assert done(line, "state", **about) == last
    assert set(last["done"]) >= {"a", "b", "c"}

    lines = ledger(line.folder, "run-1").read_text().splitlines()
    told = [(e["kind"], e["step"], e["value"]) for e in map(json.loads, lines)]
    # A question may be told as taken after what follows it has begun to run.
    assert [each for each in told if each[0] == "effect"] == [
        ("effect", "a", None),
        ("effect", "b", "yes"),
        ("effect", "c", "no"),
    ]
    assert [each for each in told if each[0] == "took"] == [
        ("took", "ask", "yes"),
        ("took", "ask2", "no"),
    ]


def test_a_step_that_fails_is_told_and_the_run_goes_on(line: Line) -> None:
    about: dict[str, Any] = {"run": "run-1", "program": "plain"}
    line.order("setup", **about).wait()
    fault = {"kind": "raise", "step": "c"}
    reply = line.order("start", **about, faults=[fault]).wait()
    assert reply["outcome"] == "error"
    assert "step c was told to fail" in reply["message"]
    line.order("go_on", **about).wait()
    lines = ledger(line.folder, "run-1").read_text().splitlines()
    fired = [e["step"] for e in map(json.loads, lines) if e["kind"] == "effect"]
    # What a framework does about a and b is its profile; that the harness sees it is ours.
    assert {"a", "b"} <= set(fired)


def test_a_framework_may_be_installed_under_another_name() -> None:
    about = FRAMEWORKS["pydantic-ai"]
    assert requirements(about, "pydantic-ai==2.68.0")[0] == "pydantic-ai-slim==2.68.0"
    assert requirements(FRAMEWORKS["crewai"], "crewai==1.15.2")[0] == "crewai==1.15.2"
    usual = requirements(FRAMEWORKS["langgraph"], "langgraph")
    assert not any("redis" in each for each in usual)
    asked = requirements(FRAMEWORKS["langgraph"], "langgraph", ["redis"])
    assert {*asked} > {*usual}
