"""Each framework and version has an environment of its own, made once and kept.

The drivers run there from a folder that holds this package and nothing else, so that the
framework sees the packages of its own environment alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import remit_gates
from remit_gates.contract._line import DriverFailed


@contextmanager
def import_path() -> Iterator[str]:
    """A folder from which `remit_gates` can be imported, and nothing else can."""
    with tempfile.TemporaryDirectory(prefix="remit-gates-path-") as folder:
        package = Path(remit_gates.__file__).parent
        Path(folder, "remit_gates").symlink_to(package, target_is_directory=True)
        yield folder


def cache() -> Path:
    """Where environments are kept unless one says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "remit-gates" / "contract"


def environment(folder: Path, requirements: tuple[str, ...], say: Callable[[str], None]) -> str:
    """The interpreter of an environment with `requirements`, made if it is not there.

    Raises:
        DriverFailed: It cannot be made.
    """
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    digest = hashlib.sha256("\n".join((version, *requirements)).encode()).hexdigest()[:10]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", requirements[0])
    place = folder / f"{name}-py{version}-{digest}"
    python = place / "bin" / "python"
    if (place / "ready").exists():
        return str(python)
    say(f"making an environment for {requirements[0]}")
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv")
    if uv is None and _runs(sys.executable, "-m", "uv", "--version"):
        uv = "-m"
    command = [uv] if uv and uv != "-m" else [sys.executable, "-m", "uv"]
    if uv:
        _run(*command, "venv", "--quiet", "--python", sys.executable, str(place))
        _run(*command, "pip", "install", "--quiet", "--python", str(python), *requirements)
    else:
        _run(sys.executable, "-m", "venv", str(place))
        _run(str(python), "-m", "pip", "install", "--quiet", *requirements)
    (place / "ready").touch()
    return str(python)


def _runs(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise DriverFailed(f"{' '.join(command[:4])} failed: {last}")
