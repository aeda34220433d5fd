"""What is published works away from this checkout: alone, and with its extras.

The wheel is built, looked into, installed into an environment of its own, and used from
another folder.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import envs


ALONE = """
import importlib.metadata, pathlib, sys
import remit_gates
from remit_gates._model import Record, RunKey
from remit_gates.errors import MissingExtra
from remit_gates.stores import open_store

assert pathlib.Path(sys.prefix) in pathlib.Path(remit_gates.__file__).parents, remit_gates
assert importlib.metadata.version("remit-gates"), "no version"

store, run = open_store("sqlite:///claims.db"), RunKey("custom", "", "order-17")
version = store.swap(run, None, Record(token=1), None)
assert version is not None, "the first swap lost"
assert store.swap(run, None, Record(token=2), None) is None, "the second swap won"
assert store.read(run).record == Record(token=1), "another record"
store.close()

for scheme, extra in (("postgresql", "postgres"), ("redis", "redis")):
    try:
        open_store(f"{scheme}://nobody@127.0.0.1/0")
    except MissingExtra as error:
        assert f"remit-gates[{extra}]" in str(error), error
    else:
        raise AssertionError("a store without its driver")

try:
    import remit_gates.http
except MissingExtra as error:
    assert "remit-gates[http]" in str(error), error
else:
    raise AssertionError("handlers without Starlette")
"""


def main() -> None:
    """Build, look, install, use."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = envs.wheel(folder / "dist")
        look(built)
        python = envs.create(folder / "env", sys.executable)
        script = str(python.parent / "remit-gates")
        away = folder / "away"
        away.mkdir()

        envs.say("alone: import, SQLite store, commands")
        envs.install(python, str(built))
        use(away, str(python), "-I", "-c", ALONE)
        use(away, script, "--help")

        envs.say("with langgraph: the demo")
        envs.install(python, f"{built}[langgraph,sqlite]")
        use(away, script, "demo")


def look(built: Path) -> None:
    """Every file of the package is in the wheel, and nothing else."""
    package = envs.ROOT / "remit_gates"
    ours = {
        path.relative_to(envs.ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix in {".py", ".sql", ".lua", ".typed", ".css"}
    }
    with zipfile.ZipFile(built) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    if packed != ours:
        sys.exit(f"the wheel lacks {sorted(ours - packed)}, and should not {sorted(packed - ours)}")
    if not any(name.endswith(".sql") for name in packed):
        sys.exit("the wheel has no SQL")
    envs.say(f"{built.name}: {len(packed)} files")


def use(folder: Path, *command: str) -> None:
    """Run `command` in `folder`; show what it printed only if it fails."""
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}failed ({done.returncode}): {command[0]}")


if __name__ == "__main__":
    main()
