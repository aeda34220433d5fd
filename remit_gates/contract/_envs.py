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
from remit_gates.contract._order import DriverFailed


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
    made = (place / "ready").exists()
    if made and "==" in requirements[0]:
        return str(python)
    uv = _uv()
    if uv:
        create = [*uv, "venv", "--quiet", "--python", sys.executable, str(place)]
        install = [*uv, "pip", "install", "--quiet", "--upgrade", "--python", str(python)]
    else:
        create = [sys.executable, "-m", "venv", str(place)]
        install = [str(python), "-m", "pip", "install", "--quiet", "--upgrade"]
    if made:
        # The newest release of yesterday may not be the newest one.
        say(f"looking for a newer {requirements[0]}")
        try:
            _run(*install, *requirements)
        except DriverFailed as failure:
            say(f"going on with what there is: {failure}")
        return str(python)
    say(f"making an environment for {requirements[0]}")
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    _run(*create)
    _run(*install, *requirements)
    (place / "ready").touch()
    return str(python)


def _uv() -> list[str] | None:
    found = shutil.which("uv")
    if found:
        return [found]
    module = [sys.executable, "-m", "uv"]
    return module if _runs(*module, "--version") else None


def _runs(*command: str) -> bool:
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 -- our own words
    return done.returncode == 0


def _run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603 -- our own words
        command, check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise DriverFailed(f"{' '.join(command[:4])} failed: {last}")
