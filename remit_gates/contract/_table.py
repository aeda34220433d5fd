"""Profiles for a reader: a matrix that fits a terminal, the figures under it, or Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TextIO

from remit_gates._console import coloured
from remit_gates.contract._model import PROPERTIES, Judgement, Profile


SHORT: Final = {
    "holds": "holds",
    "violated": "violated",
    "not applicable": "n/a",
    "not measured": "?",
}
_COLOURS: Final = {"holds": 32, "violated": 31, "not applicable": 2, "not measured": 33}


def document(profiles: Sequence[Profile]) -> str:
    """One JSON object."""
    body: dict[str, Any] = {
        "properties": dict(PROPERTIES),
        "profiles": [profile.document() for profile in profiles],
    }
    return json.dumps(body, indent=1, ensure_ascii=False)


def text(profiles: Sequence[Profile], stream: TextIO) -> str:
    """The matrix, and every figure and reason under it."""
    colour = coloured(stream)
    width = max((len(name(each)) for each in profiles), default=0) + 2
    head = " " * width + "".join(f"{key:<9}" for key in PROPERTIES)
    lines = [head.rstrip()]
    for profile in profiles:
        cells = []
        for key in PROPERTIES:
            verdict = profile.judgements[key].verdict
            shown = SHORT[verdict]
            painted = f"\x1b[{_COLOURS[verdict]}m{shown}\x1b[0m" if colour else shown
            cells.append(painted + " " * (9 - len(shown)))
        lines.append(f"{name(profile):<{width}}{''.join(cells)}".rstrip())
    figures = list(_figures(profiles))
    if figures:
        lines += ["", *figures]
    return "\n".join(lines)


def name(profile: Profile) -> str:
    """The row of `profile`."""
    return f"{profile.framework} {profile.version} {profile.backend} {profile.column}"


def markdown(profiles: Sequence[Profile]) -> str:
    """The matrix for a document: a row a profile, figures and all."""
    heads = ["framework", "backend", "", *PROPERTIES]
    rows = [
        [
            f"{profile.framework} {profile.version}",
            profile.backend,
            profile.column,
            *(str(profile.judgements[key]).replace("|", "\\|") for key in PROPERTIES),
        ]
        for profile in profiles
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows])


def _figures(profiles: Sequence[Profile]) -> Iterator[str]:
    for profile in profiles:
        told: dict[str, list[str]] = {}
        for key, judgement in profile.judgements.items():
            if judgement.figure:
                told.setdefault(_said(judgement), []).append(key)
        if told:
            yield name(profile)
            for said, keys in told.items():
                yield f"  {', '.join(keys)}: {said}"


def _said(judgement: Judgement) -> str:
    return f"{judgement.verdict}: {judgement.figure}"
