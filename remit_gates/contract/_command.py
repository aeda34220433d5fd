"""`remit-gates contract`: which frameworks, where, in which columns, and for whom."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from remit_gates._console import terminable
from remit_gates.contract._envs import cache, environment, import_path
from remit_gates.contract._frameworks import Framework, framework, requirements
from remit_gates.contract._html import page
from remit_gates.contract._line import Target
from remit_gates.contract._measure import measure
from remit_gates.contract._model import Profile, unmeasured
from remit_gates.contract._order import DriverFailed
from remit_gates.contract._places import POSTGRES, REDIS, postgres, progress, redis
from remit_gates.contract._selftest import BREAKS, mutant, wrong
from remit_gates.contract._table import document, text
from remit_gates.errors import UsageError


_ABOUT: Final = (
    "Measure what a framework does when a parked or broken run is continued: six properties and"
    " two obligations, with processes that are really killed, and effects counted where the"
    " framework cannot see them. Stock and gated side by side. Needs no model."
)


_SERVERS: Final = {"postgres": postgres, "redis": redis}
"""Where a backend that is a server comes from."""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add `contract` to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "contract", help="measure what your stack does on resume", description=_ABOUT
    )
    parser.add_argument(
        "--framework",
        action="append",
        metavar="REQUIREMENT",
        help="such as langgraph==1.2.9, or langgraph for its newest release; may be repeated"
        " (default: langgraph)",
    )
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="memory, sqlite, postgres or redis; may be repeated (default: those that need no"
        f" server). postgres uses the database that {POSTGRES} names, or else an embedded one;"
        f" redis the server that {REDIS} names",
    )
    parser.add_argument(
        "--target",
        metavar="MODULE:CALL",
        help="a checkpoint saver of your own: a function without arguments that opens it, called"
        " in every process. Measured in this environment, unless --python says another",
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="measure what is installed beside this interpreter, and make no environment",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="an option of the driver, such as durability=sync for langgraph; may be repeated",
    )
    parser.add_argument(
        "--column",
        choices=("stock", "gated", "both"),
        default="both",
        help="without the gate, with it, or side by side (default)",
    )
    parser.add_argument(
        "--envs",
        type=Path,
        metavar="DIR",
        help="where environments are kept (default: a cache of your own)",
    )
    parser.add_argument(
        "--racers", type=_number, default=4, metavar="K", help="deliveries at once (default: 4)"
    )
    parser.add_argument(
        "--tries",
        type=_number,
        default=10,
        metavar="N",
        help="how often to play what may come out either way (default: 10)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report, one page")
    parser.add_argument(
        "--fail-on",
        choices=("violated",),
        help="exit with 1 if any cell is violated; what could not be measured always does",
    )
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="show that each probe finds the fault that it is for, on a reference framework",
    )
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Carry the command out; the exit status."""
    if arguments.self_test:
        return _self_test()
    with terminable(), ExitStack() as stack:
        profiles = _profiles(arguments, stack)
    if arguments.html is not None:
        arguments.html.write_text(page(profiles), "utf-8")
    sys.stdout.write((document(profiles) if arguments.json else text(profiles, sys.stdout)) + "\n")
    verdicts = {each.verdict for profile in profiles for each in profile.judgements.values()}
    failing = {"not measured"} | ({"violated"} if arguments.fail_on else set())
    return 1 if verdicts & failing else 0


def _profiles(arguments: argparse.Namespace, stack: ExitStack) -> list[Profile]:
    path = stack.enter_context(import_path())
    urls: dict[str, str] = {}
    columns = ("stock", "gated") if arguments.column == "both" else (arguments.column,)
    profiles = []
    for requirement in arguments.framework or ["langgraph"]:
        about = framework(requirement)
        try:
            python = _python(arguments, about, requirement)
        except DriverFailed as failure:
            profiles.append(unmeasured(about.name, requirement, "", "", str(failure)))
            continue
        for backend in _backends(arguments, about):
            if backend in _SERVERS and backend not in urls:
                urls[backend] = stack.enter_context(_SERVERS[backend]())
            for column in columns:
                target = Target(
                    module=about.driver,
                    python=python,
                    backend=backend,
                    url=urls.get(backend),
                    gated=column == "gated",
                    one_process=backend in about.one_process,
                    forks=about.forks,
                    options=_options(arguments),
                    label=" ".join([arguments.target or backend, *map("=".join, arguments.option)]),
                    path=(path, str(Path.cwd())) if arguments.target else (path,),
                )
                profiles.append(_measured(target, arguments, about, requirement))
    return profiles


def _measured(
    target: Target, arguments: argparse.Namespace, about: Framework, requirement: str
) -> Profile:
    column = "gated" if target.gated else "stock"
    backend = target.label or target.backend
    where = f"{requirement} {backend} {column}"
    with progress(where) as say:
        try:
            profile = measure(target, racers=arguments.racers, tries=arguments.tries, say=say)
        except DriverFailed as failure:
            return unmeasured(about.name, requirement, backend, column, str(failure))
        say(f"done in {profile.seconds:.0f} s; violated: {_list(profile.violated())}")
    return profile


def _python(arguments: argparse.Namespace, about: Framework, requirement: str) -> str:
    if arguments.python:
        return str(arguments.python)
    if arguments.target or about.name == "reference":
        return sys.executable
    folder = arguments.envs or cache()
    with progress(requirement) as say:
        needs = requirements(about, requirement, arguments.backend or ())
        return environment(folder, needs, say)


def _backends(arguments: argparse.Namespace, about: Framework) -> Sequence[str]:
    if arguments.target:
        # The saver knows where it keeps runs, and processes come and go.
        return ("own",)
    wanted: list[str] = arguments.backend or list(about.usual)
    for each in wanted:
        if each not in about.backends:
            raise UsageError(
                f"The driver of {about.name} knows no backend {each!r}, but"
                f" {', '.join(about.backends)}. Nothing was measured."
            )
    return wanted


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    options: dict[str, str] = dict(arguments.option)
    if arguments.target:
        options["target"] = arguments.target
    return options


def _self_test() -> int:
    bad = 0
    for each, breaks in BREAKS.items():
        with progress("self-test") as say:
            say(each or "the reference itself")
            found = wrong(each, mutant(each))
        expected = f"fails {_list(breaks)}" if breaks else "keeps the contract"
        if found:
            bad += 1
            sys.stdout.write(f"WRONG  {each or 'reference'}: must have been: {expected}\n")
            sys.stdout.writelines(f"       {line}\n" for line in found)
        else:
            only = " and nothing else" if breaks else ""
            sys.stdout.write(f"ok     {each or 'reference':<26}{expected}{only}\n")
        sys.stdout.flush()
    total = len(BREAKS)
    sys.stdout.write(f"{total - bad} of {total} as they must be\n")
    return 1 if bad else 0


def _list(names: Any) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _number(given: str) -> int:
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= 64:
        raise argparse.ArgumentTypeError(f"{given!r} is not a number from 1 to 64")
    return int(given)


def _option(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{given!r} is not NAME=VALUE")
    return name, value
