"""A verdict is no better than what it rests on, and a report says all that was found."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from remit_gates.contract import _envs
from remit_gates.contract._frameworks import FRAMEWORKS, framework, requirements
from remit_gates.contract._html import page
from remit_gates.contract._model import (
    PROPERTIES,
    Call,
    Judgement,
    Mark,
    Profile,
    Scene,
    judged,
    telling,
    unmeasured,
)
from remit_gates.contract._order import DriverFailed
from remit_gates.contract._table import document, markdown, text
from remit_gates.errors import UsageError


def scene(**details: Any) -> Scene:
    return Scene("what was run", "approval", judged=["FD"], **details)


@pytest.mark.parametrize(
    ("scenes", "expected"),
    [
        ([scene()], "holds"),
        ([scene(), scene(skipped="no forks")], "holds"),
        ([scene(skipped="no forks")], "not applicable (no forks)"),
        ([scene(), scene(failed="it hung")], "not measured (it hung)"),
        ([scene(skipped="no forks"), scene(failed="it hung")], "not measured (it hung)"),
        ([scene(faults={"FD": "2 of 2"}), scene(failed="it hung")], "violated (2 of 2)"),
        ([scene(faults={"FD": "x"}), scene(faults={"FD": "x"})], "violated (x)"),
        ([scene(faults={"EO": "another's"})], "holds"),
        ([], "not applicable (no scene)"),
    ],
)
def test_the_verdict_follows_from_the_scenes(scenes: list[Scene], expected: str) -> None:
    assert str(judged("FD", scenes)) == expected


def test_only_the_last_of_several_looks_is_told() -> None:
    verbs = ["start", "state", "state", "go_on", "state", "state"]
    calls = [Call(number, verb, 0.0) for number, verb in enumerate(verbs)]
    assert [call.number for call in telling(calls)] == [0, 2, 3, 5]
    assert telling([]) == []


def profile() -> Profile:
    played = scene(
        calls=[Call(1, "answer", 0.0, 0.5, 7, "ok", "<b>", {"value": "yes"})],
        marks=[Mark("effect", "b", "yes", 1, 0.2), Mark("took", "ask", "yes", 1, 0.1)],
        saw=["b fired <once>"],
        faults={"FD": "b fired with 'yes' | not"},
    )
    every = {name: Judgement("holds") for name in PROPERTIES}
    every["FD"] = judged("FD", [played])
    return Profile("fake", "1.0", "sqlite", "stock", judgements=every, scenes=[played])


def test_a_profile_goes_to_json_and_back() -> None:
    made = profile()
    (back,) = json.loads(document([made]))["profiles"]
    assert Profile.of(back) == made


def test_the_table_is_plain_and_names_each_figure() -> None:
    lines = text([profile()], io.StringIO()).splitlines()
    assert (
        lines[1].split()
        == ["fake", "1.0", "sqlite", "stock", "holds", "holds", "violated"] + ["holds"] * 6
    )
    assert lines[-1] == "  FD: violated: b fired with 'yes' | not"


def test_markdown_keeps_its_columns() -> None:
    rows = markdown([profile()]).splitlines()
    assert {row.replace("\\|", "").count("|") for row in rows} == {len(PROPERTIES) + 4}


def test_the_page_escapes_what_it_shows_and_draws_the_race() -> None:
    shown = page([profile(), unmeasured("fake", "2.0", "sqlite", "gated", "no <env>")])
    assert "<b>" not in shown
    assert "b fired &lt;once&gt;" in shown
    assert "no &lt;env&gt;" in shown
    assert shown.count('<circle class="effect"') == 1
    assert "<script" not in shown
    assert "http" not in shown.replace("http-equiv", "")


@pytest.mark.parametrize("given", ["langgraph", "langgraph==1.2.9", "LangGraph>=1.2,<2"])
def test_a_requirement_names_its_framework(given: str) -> None:
    found = framework(given)
    assert found is FRAMEWORKS["langgraph"]
    assert requirements(found, given)[0] == given


def test_a_name_that_only_starts_alike_is_none() -> None:
    with pytest.raises(UsageError, match="no driver for 'langgraphs'"):
        framework("langgraphs")


def test_an_environment_is_made_once_and_the_newest_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run(*command: str) -> None:
        ran.append(" ".join(command))
        if "venv" in command:
            Path(command[-1]).mkdir()

    monkeypatch.setattr(_envs, "_run", run)
    monkeypatch.setattr(_envs, "_uv", lambda: ["uv"])

    def make(requirement: str) -> int:
        ran.clear()
        _envs.environment(tmp_path / "envs", (requirement, "wrapt"), lambda _: None)
        return len(ran)

    assert [make("langgraph==1.2.9"), make("langgraph==1.2.9")] == [2, 0]
    assert [make("langgraph"), make("langgraph")] == [2, 1]


def test_an_environment_that_was_not_finished_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*command: str) -> None:
        (tmp_path / "envs").mkdir(exist_ok=True)
        raise DriverFailed("no network")

    monkeypatch.setattr(_envs, "_uv", lambda: None)
    monkeypatch.setattr(_envs, "_run", fail)
    for _ in range(2):
        with pytest.raises(DriverFailed, match="no network"):
            _envs.environment(tmp_path / "envs", ("langgraph==1.2.9",), lambda _: None)
