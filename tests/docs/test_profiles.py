"""The table of docs/contract.md is what the committed profiles say, and they say enough."""

from __future__ import annotations

import re

import profiles
import pytest

from remit_gates.contract._frameworks import FRAMEWORKS
from remit_gates.contract._model import PROPERTIES, Profile, judged
from remit_gates.contract._table import name


COMMITTED = profiles.committed()


def test_the_table_is_what_is_committed() -> None:
    assert profiles.BEGIN + profiles.table() + profiles.END in profiles.PAGE.read_text("utf-8")


@pytest.mark.parametrize("profile", COMMITTED, ids=name)
def test_a_profile_has_versions_dates_and_its_evidence(profile: Profile) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", profile.date)
    assert profile.version[0].isdigit()
    assert set(profile.judgements) == set(PROPERTIES)
    if profile.scenes:
        assert {key: judged(key, profile.scenes) for key in PROPERTIES} == profile.judgements
    verdicts = {each.verdict for each in profile.judgements.values()}
    assert "not measured" not in verdicts


def test_each_framework_has_a_profile() -> None:
    measured = {each.framework for each in COMMITTED}
    assert measured == FRAMEWORKS.keys() - {"reference"}


def test_every_gated_profile_takes_one_answer_once() -> None:
    gated = [each for each in COMMITTED if each.column == "gated" and each.scenes]
    assert {each.framework for each in gated} >= {"crewai", "langgraph", "pydantic-graph"}
    for profile in gated:
        assert not profile.violated() & {"CO-c", "CO-e", "LV"}, profile.framework
