"""`remit-gates doctor` tells of each framework that is installed whether it can be gated: by its
release, and by all that the gate hooks into."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from remit_gates._cli import doctor
from tests.unit.commands import checked, failing


def test_frameworks_that_can_and_cannot_be_gated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langgraph")
    monkeypatch.setattr(doctor, "FRAMEWORKS", {"langgraph": ("langgraph", "langgraph-nosuch")})
    checks = checked(capsys, "memory://")
    assert checks["langgraph"]["state"] == "ok"
    assert "langgraph-nosuch" not in checks
    real = metadata.version
    monkeypatch.setattr(
        "remit_gates._supported.version",
        lambda name: "2.1.0" if name == "langgraph" else real(name),
    )
    checks = checked(capsys, "memory://", 1)
    assert failing(checks) == {"langgraph"}
    assert "LangGraph 2.1.0 is installed" in checks["langgraph"]["says"]


def test_a_hook_that_is_gone_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langgraph")
    monkeypatch.setattr(doctor, "FRAMEWORKS", {"langgraph": ("langgraph",)})
    versions = sys.modules.get("remit_gates.langgraph._versions")
    if versions is None:
        from remit_gates.langgraph import _versions as versions
    monkeypatch.setattr(versions, "HOOKS", (("langgraph.pregel", "Pregel", ("nosuch",)),))
    assert failing(checked(capsys, "memory://", 1)) == {"langgraph"}


def test_a_graph_that_has_nothing_to_be_gated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """pydantic-ai 2 brings one."""
    pytest.importorskip("pydantic_graph")
    real = metadata.version
    monkeypatch.setattr(doctor, "FRAMEWORKS", {"pydantic_graph": ("pydantic-graph",)})
    monkeypatch.setattr(
        "remit_gates._supported.version",
        lambda name: "2.68.0" if name == "pydantic-graph" else real(name),
    )
    check = checked(capsys, "memory://")["pydantic-graph"]
    assert check["state"] == "ok"
    assert "no persistence" in check["says"]


@pytest.mark.parametrize(
    ("distribution", "hooks", "gone"),
    [
        ("pydantic-graph", "GRAPH_HOOKS", ("pydantic_graph.graph", "Graph", ("nosuch",))),
        ("pydantic-ai-slim", "AI_HOOKS", ("pydantic_ai.capabilities", "NoSuch", ("before_run",))),
    ],
)
def test_a_hook_of_pydantic_that_is_gone_is_told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    distribution: str,
    hooks: str,
    gone: tuple[str, str, tuple[str, ...]],
) -> None:
    pytest.importorskip("pydantic_ai")
    monkeypatch.setattr(doctor, "FRAMEWORKS", {"pydantic_graph": (distribution,)})
    monkeypatch.setattr(f"remit_gates.pydantic_graph._versions.{hooks}", gone)
    assert failing(checked(capsys, "memory://", 1)) == {distribution}
