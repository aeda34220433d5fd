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
    """Run the tests of a framework, its document and its examples on each release."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("framework", help="the distribution, and the extra that is named for it")
    parser.add_argument("releases", nargs="+", help="versions, or `newest`")
    args, more = parser.parse_known_args()
    wanted = [*tests(args.framework), *more]
    failed = [
        release
        for release in args.releases
        if not passes(environment(args.framework, release), wanted)
    ]
    if failed:
        sys.exit(f"{args.framework}: failed on {', '.join(failed)}")


def tests(framework: str) -> list[str]:
    """What tests `framework`: files, and for shared files the names of its own tests."""
    found = {
        folder: sorted((envs.ROOT / folder).glob(f"{prefix}{framework}{suffix}"))
        for folder, prefix, suffix in (
            ("tests/adapters", "test_", "_*.py"),
            ("examples", "", "_*.py"),
            ("docs", "", ".md"),
        )
    }
    if not all(found.values()):
        sys.exit(f"{framework} has no tests, no example or no document")
    return [
        *map(str, found["tests/adapters"]),
        *(f"tests/docs/test_examples.py::test_example[{path.name}]" for path in found["examples"]),
        *(
            f"tests/docs/test_documents.py::test_document[docs/{path.name}]"
            for path in found["docs"]
        ),
    ]


def environment(framework: str, release: str) -> Path:
    """The interpreter of an environment with `release`, made anew when it needs other things."""
    folder = Path(sys.prefix) / "envs" / f"{framework}-{release}"
    wanted = [
        *([] if release == "newest" else [f"{framework}=={release}"]),
        *("--group", f"{envs.ROOT / 'pyproject.toml'}:unit"),
        *("--editable", f"{envs.ROOT}[{framework}]"),
    ]
    python = envs.environment(folder, *wanted)
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
        skipped = [*ET.parse(results).getroot().iter("skipped")]  # noqa: S314 -- our own file
        for found in skipped:
            envs.say(f"skipped: {found.get('message')}")
        return not skipped


if __name__ == "__main__":
    main()
