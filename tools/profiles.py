"""The table of measured profiles in docs/contract.md is what docs/profiles/ holds.

`python tools/profiles.py FILE...` takes what `remit-gates contract --json` printed into
docs/profiles/, a file a framework and version, and writes the table anew.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path

from remit_gates.contract._model import Profile, telling
from remit_gates.contract._table import document, markdown


ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "profiles"
PAGE = ROOT / "docs" / "contract.md"
BEGIN, END = "<!-- profiles -->\n", "\n<!-- /profiles -->"


def main() -> None:
    """Take in the files that are named, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    grouped: dict[str, list[Profile]] = {}
    for file in parser.parse_args().files:
        for each in json.loads(file.read_text("utf-8"))["profiles"]:
            profile = Profile.of(each)
            grouped.setdefault(f"{profile.framework}-{profile.version}", []).append(profile)
    FOLDER.mkdir(exist_ok=True)
    for name, profiles in grouped.items():
        (FOLDER / f"{name}.json").write_text(_written(profiles), "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2], "utf-8")


def committed() -> list[Profile]:
    """All that docs/profiles/ holds."""
    found = [
        Profile.of(each)
        for file in sorted(FOLDER.glob("*.json"))
        for each in json.loads(file.read_text("utf-8"))["profiles"]
    ]
    found.sort(key=_order)
    return found


def table() -> str:
    """The table of all that is committed."""
    return markdown([each for each in committed() if not _empty(each)])


def _written(profiles: list[Profile]) -> str:
    """As `remit-gates contract --json`, with a line a scene, which is what changes at once."""
    for profile in profiles:
        for scene in profile.scenes:
            scene.calls = telling(scene.calls)
    whole = document(profiles)
    for profile in profiles:
        for scene in profile.document()["scenes"]:
            long = textwrap.indent(json.dumps(scene, indent=1, ensure_ascii=False), "    ")
            whole = whole.replace(long, "    " + json.dumps(scene, ensure_ascii=False))
    return whole + "\n"


def _order(profile: Profile) -> tuple[object, ...]:
    backends = ("memory", "sqlite", "postgres", "redis", "file")
    first = profile.backend.split()[0]
    rank = backends.index(first) if first in backends else len(backends)
    version = tuple(int(part) for part in profile.version.split("."))
    return (profile.framework, version, rank, profile.backend, profile.column == "gated")


def _empty(profile: Profile) -> bool:
    """Whether there is nothing to tell but that there is no gate."""
    return {each.verdict for each in profile.judgements.values()} == {"not applicable"}


if __name__ == "__main__":
    main()
