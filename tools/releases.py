"""The tests of a framework pass on each release that it is said to be tried on, in an
environment of its own, made once.

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
from suites import SUITES, Suite


def main() -> None:
    """Test a framework on each of its releases, or on those that are named. Other words are
    pytest's."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("framework", choices=SUITES)
    args, words = parser.parse_known_args()
    suite = SUITES[args.framework]
    more = [word for word in words if word not in suite.releases]
    failed = []
    for release in [word for word in words if word in suite.releases] or suite.releases:
        python = environment(args.framework, suite, release)
        envs.say(f"{release}: {installed(python, suite)}")
        if not passes(python, [*suite.tests(release), *more]):
            failed.append(release)
    if failed:
        sys.exit(f"{args.framework}: failed on {', '.join(failed)}")


def environment(framework: str, suite: Suite, release: str) -> Path:
    """The interpreter of an environment with `release`, made anew when it needs other things."""
    folder = Path(sys.prefix) / "envs" / f"{framework}-{release}"
    return envs.environment(folder, *suite.releases[release], *suite.besides)


def installed(python: Path, suite: Suite) -> str:
    """The releases that an environment has."""
    code = (
        "from importlib.metadata import distributions as all; print(', '.join(sorted("
        f"f'{{d.name}} {{d.version}}' for d in all() if d.name.startswith({suite.told!r}))))"
    )
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


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
