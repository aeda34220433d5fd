"""`remit-gates contract sweep`: which cells, how often, and where the results go."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from remit_gates._console import terminable
from remit_gates.contract._command import _number, _python
from remit_gates.contract._envs import import_path
from remit_gates.contract._frameworks import Framework, framework
from remit_gates.contract._line import Target
from remit_gates.contract._namespaces import Skipped, network
from remit_gates.contract._namespaces import postgres as postgres_at
from remit_gates.contract._order import DriverFailed
from remit_gates.contract._places import postgres, progress
from remit_gates.contract._sweep import COLUMNS, REPETITIONS, Cell, Raced, cells, sweep
from remit_gates.contract._sweep_places import Apart, Here
from remit_gates.contract._sweep_plot import plot
from remit_gates.errors import UsageError


PUBLISHED: Final = "langgraph==1.2.9"

_ABOUT: Final = (
    "Race answers to one question, over how many there are, how far they arrive apart, and where"
    " the run is kept; stock and gated in turns. Prints effects per delivered answer: 1.0 is one"
    " effect for every delivery. The exit status is 0 only if all cells could be measured and"
    " the gated ones fired exactly once."
)


def add_parser(contract: argparse.ArgumentParser) -> None:
    """Add `sweep` to `remit-gates contract`."""
    parser = contract.add_subparsers(metavar="[sweep]").add_parser(
        "sweep", help="race answers, over a grid of cells", description=_ABOUT
    )
    parser.add_argument(
        "--framework",
        default=PUBLISHED,
        metavar="REQUIREMENT",
        help=f"such as langgraph for its newest release (default: {PUBLISHED})",
    )
    parser.add_argument(
        "--cells",
        action="append",
        metavar="PATTERN",
        help="only cells whose BACKEND/RACERS/MILLISECONDS match, such as 'sqlite/*/0'; may be"
        " repeated (default: all)",
    )
    parser.add_argument(
        "--reps",
        type=_number,
        default=REPETITIONS,
        metavar="N",
        help=f"races in a cell and column (default: {REPETITIONS})",
    )
    parser.add_argument("--column", choices=(*COLUMNS, "both"), default="both")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="decides the moments of arrival"
    )
    parser.add_argument(
        "--python", metavar="PATH", help="the framework beside this interpreter; no environment"
    )
    parser.add_argument("--envs", type=Path, metavar="DIR", help="where environments are kept")
    parser.add_argument(
        "--namespaces",
        action="store_true",
        help="each delivery from a network namespace of its own, all to one Postgres; skipped"
        " where there is no root",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON to a file, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture, as SVG")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry the command out; the exit status."""
    try:
        raced, told = _swept(arguments)
    except Skipped as why:
        skipped = json.dumps({"sweep": "network namespaces", "skipped": str(why)})
        sys.stdout.write(f"{skipped}\n" if arguments.json else f"Skipped: {why}.\n")
        return 0
    except DriverFailed as failure:
        sys.stderr.write(f"sweep: {failure}. Nothing was measured.\n")
        return 1
    body = document(raced, told, arguments)
    written = json.dumps(body, indent=1)
    if arguments.out is not None:
        arguments.out.write_text(written + "\n", "utf-8")
    if arguments.plot is not None:
        title = f"Answers that race: {told['framework']} {told['version']}"
        arguments.plot.write_text(plot(raced, title), "utf-8")
    sys.stdout.write(written + "\n" if arguments.json else text(raced, body))
    gated = [each for each in raced if each.column == "gated"]
    return 0 if all(not r.failed for r in raced) and all(r.once for r in gated) else 1


def grid(about: Framework, *, apart: bool = False) -> list[Cell]:
    """The cells of a sweep of a framework, on hosts `apart` if that is so: those share no file."""
    return cells([each for each in about.shared if not apart or each == "postgres"])


def _swept(arguments: argparse.Namespace) -> tuple[list[Raced], dict[str, Any]]:
    about = framework(arguments.framework)
    wanted = _wanted(grid(about, apart=arguments.namespaces), arguments.cells)
    columns: tuple[str, ...] = COLUMNS if arguments.column == "both" else (arguments.column,)
    with terminable(), ExitStack() as stack:
        path = stack.enter_context(import_path())
        target = Target(
            module=about.driver,
            python=_python(arguments, about, arguments.framework),
            backend="",
            forks=about.forks,
            path=(path,),
        )
        place = stack.enter_context(closing(_place(arguments, target, wanted, stack)))
        told = place.describe()
        if told.get("gate"):
            columns = tuple(each for each in columns if each == "stock")
        say = stack.enter_context(progress("sweep"))
        raced = list(
            sweep(
                place,
                wanted,
                repetitions=arguments.reps,
                columns=columns,
                seed=arguments.seed,
                say=say,
            )
        )
        if isinstance(place, Apart):
            told["hosts"] = place.hosts
    return raced, told


def _place(
    arguments: argparse.Namespace, target: Target, wanted: Sequence[Cell], stack: ExitStack
) -> Here | Apart:
    if arguments.namespaces:
        net = stack.enter_context(network(max(cell.racers for cell in wanted)))
        return Apart(target, stack.enter_context(postgres_at(net)), net)
    needs = any(cell.backend == "postgres" for cell in wanted)
    return Here(target, {"postgres": stack.enter_context(postgres())} if needs else {})


def _wanted(every: Sequence[Cell], patterns: Sequence[str] | None) -> list[Cell]:
    found = [
        cell
        for cell in every
        if not patterns or any(fnmatchcase(str(cell), pattern) for pattern in patterns)
    ]
    if not found:
        if not every:
            raise UsageError("The framework keeps no runs there. Nothing was measured.")
        raise UsageError(
            f"No cell matches {', '.join(patterns or ())}. Cells are called like {every[0]} and"
            f" {every[-1]}. Nothing was measured."
        )
    return found


def document(
    raced: Sequence[Raced], about: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """The results, with all that is needed to run them again."""
    return {
        "sweep": "effects per delivered answer",
        "framework": about["framework"],
        "version": about["version"],
        "packages": about.get("packages", {}),
        "python": about.get("python", ""),
        "platform": platform.platform(),
        "hosts": about.get("hosts", {}),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "repetitions": arguments.reps,
        "seed": arguments.seed,
        "summary": {
            column: _summary(raced, column)
            for column in dict.fromkeys(each.column for each in raced)
        },
        "cells": [each.document() for each in raced],
    }


def _summary(raced: Sequence[Raced], column: str) -> dict[str, Any]:
    mine = [each for each in raced if each.column == column]
    errors: dict[str, int] = {}
    for each in mine:
        for name, count in each.errors.items():
            errors[name] = errors.get(name, 0) + count
    return {
        "cells": len(mine),
        "saturated": sum(each.saturated for each in mine),
        "once": sum(each.once for each in mine),
        "failed": sum(bool(each.failed) for each in mine),
        "deliveries": sum(each.deliveries for each in mine),
        "effects": sum(sum(each.effects) for each in mine),
        "errors": errors,
    }


def text(raced: Sequence[Raced], body: dict[str, Any]) -> str:
    """The figures for a terminal."""
    what = f"effects per delivered answer, {body['repetitions']} races a cell"
    lines = [f"{body['framework']} {body['version']}: {what}"]
    jitters = sorted({each.jitter for each in raced})
    for backend in dict.fromkeys(each.backend for each in raced):
        for column in body["summary"]:
            mine = [r for r in raced if (r.backend, r.column) == (backend, column)]
            lines += ["", f"{backend}, {column}"]
            lines.append("  racers" + "".join(f"{jitter:>5} ms" for jitter in jitters))
            for racers in sorted({each.racers for each in mine}):
                row = {each.jitter: each for each in mine if each.racers == racers}
                shown = [_figure(row.get(jitter)) for jitter in jitters]
                lines.append(f"  {racers:>6}" + "".join(f"{figure:>8}" for figure in shown))
    lines += ["", *(_told(column, summary) for column, summary in body["summary"].items())]
    lines += [f"{each.backend}/{each.racers}: {each.failed}" for each in raced if each.failed]
    return "\n".join(lines) + "\n"


def _figure(raced: Raced | None) -> str:
    if raced is None:
        return ""
    return "?" if raced.failed else f"{raced.per_delivery:.2f}"


def _told(column: str, summary: dict[str, Any]) -> str:
    errors = ", ".join(f"{count} {name}" for name, count in sorted(summary["errors"].items()))
    return (
        f"{column}: {summary['effects']} effects for {summary['deliveries']} deliveries;"
        f" saturated in {summary['saturated']} of {summary['cells']} cells, exactly once in"
        f" {summary['once']}. The others were told: {errors or 'nothing'}."
    )
