"""The tests of a framework pass on each release of it that is named, in an environment of
its own: for frameworks that are too heavy, or too particular, for the one that tests the rest.

A test that is skipped fails the run, so that a short run is never taken for a full one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import envs


def main() -> None:
    """Run `tests/adapters/test_FRAMEWORK_*.py` on each release."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("framework", help="the distribution, and the extra that is named for it")
    parser.add_argument("releases", nargs="+", help="versions, or `newest`")
    args, more = parser.parse_known_args()
    files = sorted(map(str, (envs.ROOT / "tests/adapters").glob(f"test_{args.framework}_*.py")))
    failed = [
        release
        for release in args.releases
        if not passes(environment(args.framework, release), [*files, *more])
    ]
    if failed or not files:
        sys.exit(f"{args.framework}: failed on {', '.join(failed) or 'finding its tests'}")


def environment(framework: str, release: str) -> Path:
    """The interpreter of an environment with `release`, made anew when it needs other things."""
    folder = Path(sys.prefix) / "envs" / f"{framework}-{release}"
    wanted = [
        *([] if release == "newest" else [f"{framework}=={release}"]),
        *("--group", f"{envs.ROOT / 'pyproject.toml'}:unit"),
        *("--editable", f"{envs.ROOT}[{framework}]"),
    ]
    stamp = folder / "remit-gates.stamp"
    if not stamp.is_file() or stamp.read_text() != "\n".join(wanted):
        envs.say(f"making {folder}")
        envs.install(envs.create(folder, sys.executable), *wanted)
        stamp.write_text("\n".join(wanted))
    python = envs.executable(folder)
    code = f"from importlib.metadata import version; print(version({framework!r}))"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    envs.say(f"{framework} {found.stdout.strip()}")
    return python


def passes(python: Path, arguments: list[str]) -> bool:
    """Whether the tests pass, and all of them run."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junit-xml={results}", *arguments]
        if subprocess.run(command, cwd=envs.ROOT, check=False).returncode != 0:
            return False
        skipped = [*ET.parse(results).getroot().iter("skipped")]
        for found in skipped:
            envs.say(f"skipped: {found.get('message')}")
        return not skipped


if __name__ == "__main__":
    main()
