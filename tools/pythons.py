"""The unit tests pass on every supported Python that this machine has.

A Python that is absent is named, so that a short run is never taken for a full one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import envs


VERSIONS = ("3.10", "3.11", "3.12", "3.13")


def main() -> None:
    """Run `tests/unit` on each of `VERSIONS`, in environments below the given folder."""
    folder = Path(sys.argv[1])
    failed: list[str] = []
    absent: list[str] = []
    for version in VERSIONS:
        python = find(version)
        if python is None:
            envs.say(f"Python {version} is absent")
            absent.append(version)
            continue
        envs.say(f"Python {version}: {python}")
        wanted = ("--editable", str(envs.ROOT), "--group", "unit")
        ready = envs.environment(folder / version, *wanted, python=python)
        command = [str(ready), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit"]
        if subprocess.run(command, cwd=envs.ROOT, check=False).returncode != 0:
            failed.append(version)
    if failed or len(absent) == len(VERSIONS):
        sys.exit(f"unit tests: failed on {failed or 'nothing'}, absent {absent or 'none'}")


def find(version: str) -> str | None:
    """An interpreter of `version` that runs: this one, or from the path, or from pyenv."""
    for candidate in candidates(version):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            done = subprocess.run(
                [candidate, "-c", code], check=False, capture_output=True, text=True
            )
        except OSError:
            continue
        if done.stdout.strip() == version:
            return candidate
    return None


def candidates(version: str) -> Iterator[str]:
    """Where an interpreter of `version` may be; a shim may have nothing behind it."""
    yield sys.executable
    if on_path := shutil.which(f"python{version}"):
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for found in sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True):
        yield str(found)


if __name__ == "__main__":
    main()
