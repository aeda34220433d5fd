"""The tests of a framework pass on each release that it is said to be tried on, in an
environment of its own, made once.

A test that is skipped for no foreseen reason fails the run, and so do too few tests, so that a
short run is never taken for a full one.
"""

from __future__ import annotations

import argparse
import os
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
        if not passes(suite, release, python, more):
            failed.append(release)
    if failed:
        sys.exit(f"{args.framework}: failed on {', '.join(failed)}")


def environment(framework: str, suite: Suite, release: str) -> Path:
    """The interpreter of an environment with `release`."""
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


def passes(suite: Suite, release: str, python: Path, more: list[str]) -> bool:
    """Whether the tests pass, and all of them run."""
    with tempfile.TemporaryDirectory() as folder, suite.servers() as servers:
        results = Path(folder) / "results.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junit-xml={results}", *suite.tests(release), *more]
        done = subprocess.run(command, cwd=envs.ROOT, check=False, env={**os.environ, **servers})
        if done.returncode != 0:
            return False
        wrong = faults(suite, release, results, whole=not more)
        for fault in wrong:
            envs.say(fault)
        return not wrong


def faults(suite: Suite, release: str, results: Path, *, whole: bool) -> list[str]:
    """Why a run in which nothing failed does not show what it should.

    `results` is what pytest wrote of it. Of a part that somebody asked for, which is not
    `whole`, only the skips are judged.
    """
    cases = [*ET.parse(results).getroot().iter("testcase")]  # noqa: S314 -- our own file
    reasons = [str(found.get("message")) for case in cases for found in case.iter("skipped")]
    foreseen = tuple(suite.foreseen)
    wrong = [f"skipped: {reason}" for reason in reasons if not reason.startswith(foreseen)]
    if whole:
        for beginning, part in suite.foreseen.items():
            count = sum(reason.startswith(beginning) for reason in reasons)
            if count > part * len(cases):
                wrong.append(f"{count} of {len(cases)} tests are skipped: {beginning} ...")
        ran = [str(case.get("name")) for case in cases if case.find("skipped") is None]
        for words, least in suite.least.get(release, {}).items():
            count = sum(words in name for name in ran)
            if count < least:
                of_them = f" with {words!r} in their names" if words else ""
                wrong.append(f"{count} tests{of_them} ran, of at least {least}")
    return wrong


if __name__ == "__main__":
    main()
