"""Runs a test's script in a process of its own, where it may fork as it likes."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(script: str, *args: str) -> str:
    """What `script` printed; its errors are the test's."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
