"""The report as one page that needs nothing else: no script, no font, no network.

Each cell of the matrix is a link to what was run and seen; the panel that the address names
is the one that shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from remit_gates.contract._model import PROPERTIES, Judgement, Profile, Scene
from remit_gates.contract._race import drawing
from remit_gates.contract._table import SHORT, name
from remit_gates.contract.drivers._kit import PROGRAMS


_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_ABOUT: Final = (
    "Effects were counted outside of the framework; processes were killed with SIGKILL."
    " Open a cell to see what was run and seen."
)

_SIGN: Final = '<span><svg viewBox="0 0 10 10"><path class="{}" d="{}"/></svg> {}</span>'

_ROUND: Final = "M5 0A5 5 0 0 1 5 10A5 5 0 0 1 5 0Z"
_SQUARE: Final = "M5 0 10 5 5 10 0 5Z"

_LEGEND: Final = " ".join(
    [
        '<p class="legend">In the time lines:',
        _SIGN.format("effect", _ROUND, "an effect fired"),
        _SIGN.format("took", _SQUARE, "an answer was taken"),
        _SIGN.format("held", _SQUARE, "held by the harness") + "</p>",
    ]
)


def page(profiles: Sequence[Profile]) -> str:
    """The whole document."""
    style = files("remit_gates.contract").joinpath("report.css").read_text("utf-8")
    dates = ", ".join(sorted({profile.date for profile in profiles if profile.date}))
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<link rel="icon" href="data:,">',
            "<title>The resume contract, measured</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            "<header>",
            "<h1>The resume contract, measured</h1>",
            f"<p>{escape(dates)}. {_ABOUT}</p>",
            _LEGEND,
            "</header>",
            "<main>",
            *_matrix(profiles),
            *(line for row, profile in enumerate(profiles) for line in _panels(row, profile)),
            "</main>",
            "</body>",
            "</html>",
            "",
        )
    )


def _matrix(profiles: Sequence[Profile]) -> Iterator[str]:
    yield '<div class="wide" tabindex="0" role="region" aria-label="The matrix">'
    yield '<table class="matrix" id="matrix"><thead><tr><th scope="col">profile</th>'
    for key, meaning in PROPERTIES.items():
        yield f'<th scope="col"><abbr title="{escape(meaning)}">{key}</abbr></th>'
    yield "</tr></thead><tbody>"
    for row, profile in enumerate(profiles):
        yield f'<tr class="{escape(profile.column)}"><th scope="row">{_row(profile)}</th>'
        for key in PROPERTIES:
            yield _cell(row, key, profile.judgements[key])
        yield "</tr>"
    yield "</tbody></table></div>"


def _row(profile: Profile) -> str:
    return (
        f"<span>{escape(profile.framework)} {escape(profile.version)}</span>"
        f" <small>{escape(profile.backend)}, {escape(profile.column)}</small>"
    )


def _cell(row: int, key: str, judgement: Judgement) -> str:
    kind = judgement.verdict.replace(" ", "-")
    shown = SHORT[judgement.verdict]
    title = escape(str(judgement), quote=True)
    return f'<td class="{kind}"><a href="#p{row}-{key}" title="{title}">{shown}</a></td>'


def _panels(row: int, profile: Profile) -> Iterator[str]:
    for key, meaning in PROPERTIES.items():
        judgement = profile.judgements[key]
        kind = judgement.verdict.replace(" ", "-")
        yield f'<section id="p{row}-{key}" class="panel" aria-labelledby="h{row}-{key}">'
        yield f'<a class="close" href="#matrix">close</a><h2 id="h{row}-{key}">{key}: {meaning}</h2>'
        yield f"<p>{escape(name(profile))}</p>"
        yield f'<p class="verdict {kind}">{escape(str(judgement))}</p>'
        for number in judgement.scenes:
            yield from _scene(profile.scenes[number], key)
        yield "</section>"


def _scene(scene: Scene, key: str) -> Iterator[str]:
    yield f"<article><h3>{escape(scene.title)}</h3>"
    stages = " → ".join(" ∥ ".join(stage) for stage in PROGRAMS[scene.program])
    yield f'<p class="program">{escape(stages)}</p>'
    if scene.skipped:
        yield f"<p>Not applicable: {escape(scene.skipped)}</p>"
    if scene.failed:
        yield f"<p>Not measured: {escape(scene.failed)}</p>"
    if key in scene.faults:
        yield f'<p class="verdict violated">{escape(scene.faults[key])}</p>'
    yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in scene.saw) + "</ul>"
    if scene.calls:
        yield drawing(scene)
        yield '<details><summary>every order, and what it came to</summary><div class="wide">'
        yield "<table><thead><tr><th>order</th><th>from</th><th>to</th><th>came to</th></tr></thead>"
        yield "<tbody>"
        for call in scene.calls:
            came = f"{call.outcome}: {call.said}" if call.said else call.outcome
            ended = "" if call.ended is None else f"{call.ended:.3f} s"
            faults = ", ".join(
                f"{fault['kind']} at {fault['step']}" for fault in call.details.get("faults", ())
            )
            told = " ".join(filter(None, (call.verb, str(call.details.get("value", "")), faults)))
            yield (
                f"<tr><td>{call.number}. {escape(told)}</td><td>{call.began:.3f} s</td>"
                f"<td>{ended}</td><td>{escape(came)}</td></tr>"
            )
        yield "</tbody></table></div></details>"
    yield "</article>"
