"""An environment is made by uv where uv can be had, and by venv and pip where it cannot.

Needs nothing but the standard library: it is the first thing that runs on a fresh machine.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path


ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = "Scripts" if os.name == "nt" else "bin"


def main() -> None:
    """Have `folder` hold this checkout, editable, with its extras and groups."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--extras", nargs="*", default=[])
    parser.add_argument("--groups", nargs="*", default=[])
    args = parser.parse_args()
    python = executable(args.folder)
    if not runs(python):
        say(f"making {args.folder} with Python {sys.version.split()[0]}")
        shutil.rmtree(args.folder, ignore_errors=True)
        bootstrap(args.folder)
    say("installing remit-gates with " + ", ".join([*args.extras, *args.groups]))
    groups = [word for group in args.groups for word in ("--group", group)]
    install(python, "--editable", f"{ROOT}[{','.join(args.extras)}]", *groups)


def bootstrap(folder: Path) -> None:
    """Make the environment in which everything else is made, with uv in it if possible."""
    if importlib.util.find_spec("ensurepip") is not None:
        run(sys.executable, "-m", "venv", str(folder))
        pip = [str(executable(folder)), "-m", "pip", "install", "--quiet"]
        if subprocess.run([*pip, "uv"], check=False).returncode != 0:
            say("uv cannot be had here; going on with pip")
            # Dependency groups are pip's since 25.1.
            run(*pip, "--upgrade", "pip")
    elif uv := shutil.which("uv"):
        run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
    else:
        sys.exit("This Python has no ensurepip. Install its venv package (python3-venv) or uv.")


def create(folder: Path, python: str) -> Path:
    """A new environment in `folder` for the interpreter `python`; its own interpreter."""
    if uv := uv_command():
        run(*uv, "venv", "--quiet", "--clear", "--python", python, str(folder))
    else:
        run(python, "-m", "venv", "--clear", str(folder))
        run(str(executable(folder)), "-m", "pip", "install", "--quiet", "--upgrade", "pip")
    return executable(folder)


def install(python: Path, *wanted: str) -> None:
    """Install `wanted`, in pip's words, into the environment of `python`."""
    if uv := uv_command(python):
        run(*uv, "pip", "install", "--quiet", "--python", str(python), *wanted)
    else:
        run(str(python), "-m", "pip", "install", "--quiet", *wanted)


def environment(folder: Path, *wanted: str, python: str = sys.executable) -> Path:
    """The interpreter of an environment of `python` with `wanted` alone, made anew when
    something else is wanted than what its stamp says, or this checkout says it otherwise."""
    stamp = folder / "remit-gates.stamp"
    said = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    needed = "\n".join([*wanted, said])
    if not stamp.is_file() or stamp.read_text() != needed:
        say(f"making {folder}")
        install(create(folder, python), *wanted)
        stamp.write_text(needed)
    return executable(folder)


def wheel(folder: Path) -> Path:
    """The wheel of this checkout, built in isolation into `folder`."""
    if uv := uv_command():
        run(*uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT))
    else:
        run(
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--wheel-dir", str(folder), str(ROOT)),
        )
    (built,) = folder.glob("*.whl")
    return built


def executable(folder: Path) -> Path:
    """The interpreter of the environment in `folder`."""
    # Not resolved: behind the link lies the interpreter that the environment was made from.
    return folder.absolute() / SCRIPTS / "python"


def uv_command(*pythons: Path) -> list[str] | None:
    """How to run uv from this or another interpreter, or from the path; None if nowhere."""
    for python in (sys.executable, *map(str, pythons)):
        if runs(Path(python), "-m", "uv", "--version"):
            return [python, "-m", "uv"]
    found = shutil.which("uv")
    return [found] if found else None


def runs(*command: str | Path) -> bool:
    """Whether `command` is there and ends well."""
    words = [str(word) for word in command]
    if len(words) == 1:
        words.append("--version")
    try:
        return subprocess.run(words, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run `command` and end with its own status if it fails."""
    done = subprocess.run(command, cwd=cwd, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}")


def say(text: str) -> None:
    """One line of progress, in front of whatever the next program prints."""
    print(f"· {text}", flush=True)


if __name__ == "__main__":
    main()
