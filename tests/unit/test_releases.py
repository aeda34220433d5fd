"""A short run on another release is not taken for a full one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from releases import faults
from suites import SUITES

from tests.adapters.conftest import CANNOT


SUITE = replace(
    SUITES["crewai"], foreseen={CANNOT: 0.1}, least={"old": {"": 20, "[redis": 5}, "newest": {}}
)


def results(folder: Path, plain: int, redis: int, *reasons: str) -> Path:
    """What pytest writes of a run."""
    ran = [f'<testcase name="test_a[{number}]"/>' for number in range(plain)]
    ran += [f'<testcase name="test_a[redis-{number}]"/>' for number in range(redis)]
    ran += [f'<testcase name="test_b"><skipped message="{why}"/></testcase>' for why in reasons]
    path = folder / "results.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(ran)}</testsuite></testsuites>")
    return path


@pytest.mark.parametrize(
    ("release", "plain", "redis", "reasons", "found"),
    [
        ("old", 20, 5, (), []),
        ("old", 20, 5, (f"{CANNOT} 2",) * 2, []),
        ("old", 20, 5, ("no server",), ["skipped: no server"]),
        ("old", 20, 5, (f"{CANNOT} 2",) * 3, [f"3 of 28 tests are skipped: {CANNOT} ..."]),
        ("old", 14, 5, (), ["19 tests ran, of at least 20"]),
        ("old", 20, 4, (), ["4 tests with '[redis' in their names ran, of at least 5"]),
        ("newest", 1, 0, (), []),
    ],
)
def test_a_short_run_is_told(
    release: str,
    plain: int,
    redis: int,
    reasons: tuple[str, ...],
    found: list[str],
    tmp_path: Path,
) -> None:
    assert faults(SUITE, release, results(tmp_path, plain, redis, *reasons), whole=True) == found


def test_a_part_is_judged_by_what_it_skips_only(tmp_path: Path) -> None:
    written = results(tmp_path, 1, 0, f"{CANNOT} 2", "no server")
    assert faults(SUITE, "old", written, whole=False) == ["skipped: no server"]


def test_a_suite_names_its_environments() -> None:
    for suite in SUITES.values():
        assert set(suite.least) <= set(suite.releases)
        assert all(suite.tests(release) for release in suite.releases)
