"""`remit-gates contract` finds what is broken, and finds nothing where nothing is."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from browser import find

from remit_gates import cli
from remit_gates.contract import _command, _selftest
from remit_gates.contract._model import PROPERTIES, Profile


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers are synced at every entry, which a memory file system makes cheap."""
    if os.access("/dev/shm", os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")


@pytest.mark.parametrize("name", _selftest.BREAKS)
def test_each_mutant_fails_what_it_breaks_and_nothing_else(name: str) -> None:
    profile = _selftest.mutant(name)
    assert _selftest.wrong(name, profile) == []
    assert set(profile.judgements) == set(PROPERTIES)
    if not name:
        assert {each.verdict for each in profile.judgements.values()} == {"holds"}


def test_the_race_that_is_lost_is_lost_by_everybody() -> None:
    told = _selftest.mutant("no_lock").judgements
    assert told["CO-c"].figure == "at once, 3 of 3 took it"
    assert told["CO-e"].figure == "at once, b fired 3x for 3"


def test_every_property_is_broken_by_a_mutant() -> None:
    assert set().union(*_selftest.BREAKS.values()) == set(PROPERTIES)


def test_the_self_test_says_what_it_did_not_find(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    breaks = {"ignored_fork": frozenset({"FD"}), "": frozenset({"RD"})}
    for module in (_command, _selftest):
        monkeypatch.setattr(module, "BREAKS", breaks)
    assert cli.main(["contract", "--self-test"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("ok     ignored_fork")
    assert out[1:] == [
        "WRONG  reference: must have been: fails RD",
        "       RD was not found: holds",
        "1 of 2 as they must be",
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Profile], Path]:
    pytest.importorskip("langgraph.checkpoint.sqlite")
    report = tmp_path_factory.mktemp("report") / "report.html"
    given = ["contract", "--python", sys.executable, "--backend", "sqlite", "--racers", "3"]
    with pytest.MonkeyPatch.context() as patch:
        if os.access("/dev/shm", os.W_OK):
            patch.setattr(tempfile, "tempdir", "/dev/shm")
        out = tmp_path_factory.mktemp("out") / "out.json"
        with out.open("w") as stream:
            patch.setattr(sys, "stdout", stream)
            status = cli.main([*given, "--tries", "3", "--json", "--html", str(report)])
    profiles = [Profile.of(each) for each in json.loads(out.read_text())["profiles"]]
    return status, profiles, report


def test_stock_langgraph_breaks_what_it_is_known_to_break(measured: Any) -> None:
    status, (stock, _), _ = measured
    assert status == 0  # a finding is no failure, unless one asks for it
    assert {"FD", "CV", "CO-c", "CO-e", "FI"} <= stock.violated()
    # How many get in together is the race's own affair.
    assert re.search("at once, [23] of 3 took it", stock.judgements["CO-c"].figure)
    assert re.search("at once, b fired [23]x for 3", stock.judgements["CO-e"].figure)
    assert {stock.judgements[each].verdict for each in ("PC", "RD", "LV")} == {"holds"}


def test_gated_langgraph_keeps_all_that_a_gate_is_about(measured: Any) -> None:
    _, (_, gated), _ = measured
    # A step that finished and was not yet written when its process was killed is LangGraph's.
    assert gated.violated() <= {"EO"}
    assert {each.verdict for each in gated.judgements.values()} <= {"holds", "violated"}


def test_the_evidence_is_kept(measured: Any) -> None:
    _, (stock, gated), _ = measured
    for profile in (stock, gated):
        race = next(each for each in profile.scenes if each.title.startswith("3 answers at once"))
        racers = [call for call in race.calls if call.verb == "answer"]
        assert len({call.pid for call in racers}) == 3
        fired = [mark for mark in race.marks if (mark.kind, mark.step) == ("effect", "b")]
        assert len(fired) == 1 if profile is gated else len(fired) >= 1
        killed = [call for scene in profile.scenes for call in scene.calls if call.said == "killed"]
        assert len(killed) >= 5


def test_gated_langgraph_keeps_it_all_on_redis_too(
    redis_stack_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langgraph.checkpoint.redis")
    monkeypatch.setenv("REMIT_CONTRACT_REDIS", redis_stack_url)
    given = ["contract", "--python", sys.executable, "--backend", "redis", "--column", "gated"]
    assert cli.main([*given, "--racers", "3", "--tries", "1", "--json"]) == 0
    (found,) = map(Profile.of, json.loads(capsys.readouterr().out)["profiles"])
    assert found.violated() <= {"EO"}
    assert {each.verdict for each in found.judgements.values()} <= {"holds", "violated"}


def test_redis_is_measured_only_where_a_server_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REMIT_CONTRACT_REDIS", raising=False)
    assert cli.main(["contract", "--python", sys.executable, "--backend", "redis"]) == 2
    assert "REMIT_CONTRACT_REDIS" in capsys.readouterr().err


@pytest.mark.parametrize("viewport", [(1280, 900), (390, 844)], ids=["desktop", "narrow"])
def test_the_page_opens_each_cell_in_a_browser(measured: Any, viewport: tuple[int, int]) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    executable = find()
    if executable is None:
        pytest.skip("there is no Chromium here")
    width, height = viewport
    said: list[str] = []
    with playwright.sync_playwright() as started:
        args = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = started.chromium.launch(executable_path=executable, args=args)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: said.append(request.url))
        page.goto(measured[2].as_uri())
        assert page.locator(".matrix tbody tr").count() == 2
        assert page.locator(".panel:visible").count() == 0
        page.click("a[href='#p0-CO-e']")
        panel = page.locator("#p0-CO-e")
        assert panel.is_visible()
        stock = measured[1][0]
        assert stock.judgements["CO-e"].figure in panel.inner_text()
        race = panel.locator("article", has_text="3 answers at once (try 1)")
        (scene,) = (one for one in stock.scenes if one.title.startswith("3 answers at once (try 1"))
        fired = [mark for mark in scene.marks if mark.kind == "effect" and mark.step in ("b", "c")]
        got_in = sum(mark.step == "b" for mark in fired)
        assert race.locator("svg.race rect.bar").count() == 3
        assert race.locator("svg.race circle.effect").count() == len(fired) > 0
        race.locator("summary").click()
        assert race.locator("td", has_text="ok: finished").count() >= got_in
        page.click("a[href='#p1-CO-e']")
        assert page.locator(".panel:visible").count() == 1
        page.locator("#p1-CO-e .close").click()
        assert page.locator(".panel:visible").count() == 0
        # The page itself never scrolls sideways; what is wide does.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
    assert [line for line in said if not line.startswith(("file:", "data:"))] == []


SAVER = """
import os, sqlite3
from langgraph.checkpoint.sqlite import SqliteSaver

def make_saver():
    path = os.environ["HOME"] + "/own.db"
    return SqliteSaver(sqlite3.connect(path, timeout=30, check_same_thread=False))
"""


def test_a_saver_of_ones_own_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langgraph.checkpoint.sqlite")
    (tmp_path / "mine.py").write_text(SAVER)
    monkeypatch.chdir(tmp_path)
    given = ["contract", "--target", "mine:make_saver", "--column", "stock", "--racers", "2"]
    assert cli.main([*given, "--tries", "1", "--fail-on", "violated"]) == 1
    out = capsys.readouterr().out
    assert "mine:make_saver stock" in out
    assert "at once, b fired 2x for 2" in out


def test_what_cannot_be_started_was_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["contract", "--backend", "sqlite", "--column", "stock", "--json", "--python"]
    assert cli.main([*given, str(tmp_path / "no-python")]) == 1
    (profile,) = json.loads(capsys.readouterr().out)["profiles"]
    judgements = profile["judgements"].values()
    assert {each["verdict"] for each in judgements} == {"not measured"}
    assert "no-python cannot be run" in profile["judgements"]["EO"]["figure"]


def test_a_driver_whose_framework_is_not_there_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if importlib.util.find_spec("workflows") is not None:
        pytest.skip("it is there")
    given = ["contract", "--framework", "llama-index-workflows", "--column", "stock"]
    assert cli.main([*given, "--python", sys.executable]) == 1
    out = capsys.readouterr().out
    assert "not measured: describe: ModuleNotFoundError: No module named 'workflows'" in out


def test_a_terminated_command_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("langgraph.checkpoint.sqlite")
    given = ["contract", "--python", sys.executable, "--backend", "sqlite"]
    with subprocess.Popen(
        [sys.executable, "-m", "remit_gates.cli", *given],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stderr is not None
        for line in command.stderr:
            if "effect once" in line:
                break
        command.send_signal(signal.SIGTERM)
        command.stderr.read()
        assert command.wait(60) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_unknown_words_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["contract", "--framework", "no-such==1"]) == 2
    assert "There is no driver for 'no-such==1'" in capsys.readouterr().err
    assert cli.main(["contract", "--python", "x", "--backend", "floppy"]) == 2
    assert "knows no backend 'floppy'" in capsys.readouterr().err
