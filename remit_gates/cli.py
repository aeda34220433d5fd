"""The command `remit-gates`: its arguments, and what becomes of a failure. That is one line
on the standard error and an exit status: 2 when the call cannot mean anything, 1 when what it
asked for was not done."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Final, NoReturn

from remit_gates._cli.doctor import doctor
from remit_gates._cli.ls import ls
from remit_gates._cli.prune import prune
from remit_gates._cli.release import release
from remit_gates._cli.setup import setup
from remit_gates._cli.show import show
from remit_gates._cli.values import age, clean, key, limit
from remit_gates._demo.main import RACERS, demo
from remit_gates._phases import RunPhase
from remit_gates.contract import _command as contract
from remit_gates.contract import _sweep_command as sweep
from remit_gates.errors import RemitError, UsageError


PROG: Final = "remit-gates"

_URL: Final = "the store, such as sqlite:///claims.db or postgresql://..."

_Run = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others here."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{message} (see {self.prog} --help)")
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv`, or with the process's own arguments; the exit status."""
    arguments = _parser().parse_args(argv)
    run: _Run = arguments.run
    # What is logged is what is printed here, in other words.
    silent = logging.NullHandler()
    logging.getLogger("remit_gates").addHandler(silent)
    try:
        status = run(arguments)
        sys.stdout.flush()
        return status
    except UsageError as error:
        _complain(str(error))
        return 2
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would flush it once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RemitError, OSError) as error:
        _complain(str(error))
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except Exception as error:  # an operator reads one line; a developer asks for more
        if sys.flags.dev_mode:
            raise
        _complain(f"unexpected {type(error).__name__}: {error} (python -X dev shows where)")
        return 1
    finally:
        logging.getLogger("remit_gates").removeHandler(silent)


def _demo(arguments: argparse.Namespace) -> int:
    return demo(arguments.racers, arguments.store, arguments.json)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROG, description="One pause, one answer, one continuation.")
    parser.add_argument("--version", action="version", version=f"{PROG} {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _demo_parser(commands)
    sweep.add_parser(contract.add_parser(commands))

    def command(name: str, run: _Run, summary: str, description: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=summary, description=description)
        made.add_argument("url", metavar="URL", help=_URL)
        made.add_argument("--json", action="store_true", help="print JSON and nothing else")
        made.set_defaults(run=run)
        return made

    many = command(
        "ls",
        ls,
        "list runs, a page at a time",
        "List the runs of a store in the order of their names, a page at a time. The command for"
        " the next page is told on the standard error.",
    )
    many.add_argument("--framework", help="only runs of this adapter, such as langgraph")
    many.add_argument("--namespace", help="only runs of this namespace of a gate")
    many.add_argument(
        "--phase",
        action="append",
        choices=[phase.value for phase in RunPhase],
        help="only runs in this phase; may be repeated",
    )
    many.add_argument(
        "--older-than", type=age, metavar="AGE", help="only runs that did not change for, say, 10m"
    )
    many.add_argument(
        "--limit", type=limit, default=50, metavar="N", help="runs on a page (default: 50)"
    )
    many.add_argument("--after", type=key, metavar="KEY", help="only runs behind this one")

    one = command(
        "show",
        show,
        "show what is known of one run",
        "Show the record of a run: its claim and holder, who answered what and when, what became"
        " of it, and what may be done about it. Answers themselves are not in a record.",
    )
    _run_arguments(one)

    free = command(
        "release",
        release,
        "let what did not finish be answered again",
        "Let the pauses of a run that failed or was abandoned be answered again. A run that is"
        " being served is refused.",
    )
    _run_arguments(free)
    free.add_argument("--pause", help="only this pause (default: every unfinished one)")
    free.add_argument("--actor", help="who releases, for the record (default: user@host)")
    free.add_argument("--reason", help="why, for the record")
    _change_arguments(free)

    old = command(
        "prune",
        prune,
        "forget old records",
        "Forget the records that have no claim and did not change for a time. A copy of an answer"
        " that comes later still is then not recognised as one.",
    )
    old.add_argument(
        "--older-than",
        type=age,
        metavar="AGE",
        required=True,
        help="forget what did not change for, say, 30d",
    )
    _change_arguments(old)

    ready = command(
        "setup",
        setup,
        "create the table of a store, or bring it up to date",
        "Create the table of a store, or bring it up to date. Harmless if repeated.",
    )
    ready.add_argument("--dry-run", action="store_true", help="only say whether it is needed")

    command(
        "doctor",
        doctor,
        "find what can make a gate lose a claim",
        "Look at the connection, the schema, the clock, the settings of a store, and at the"
        " frameworks that are installed here. The exit status is 0 only if nothing failed.",
    )
    return parser


def _demo_parser(commands: Any) -> None:
    play = commands.add_parser(
        "demo",
        help="see what duplicate answers do to a graph, stock and gated",
        description="Deliver duplicate answers to a LangGraph run from several processes, with"
        " its stock checkpointer and with a gated one, and count what fired. Needs no model and"
        " no network. The exit status is 0 only if the gated column is right.",
    )
    play.add_argument(
        "--racers", type=_racers, default=8, metavar="N", help="processes that race (default: 8)"
    )
    play.add_argument(
        "--store",
        metavar="URL",
        help="store of the gated column; with postgresql://... the checkpoints of both columns are"
        " there too, and the demo deletes its runs (default: embedded SQLite, in a temporary file)",
    )
    play.add_argument("--json", action="store_true", help="print JSON and nothing else")
    play.set_defaults(run=_demo)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="the framework's name of the run")
    parser.add_argument(
        "--framework", default="langgraph", help="the adapter it belongs to (default: langgraph)"
    )
    parser.add_argument("--namespace", default="", help="the gate's namespace (default: empty)")


def _change_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--yes", action="store_true", help="do it without being asked")


def _racers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) not in RACERS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from {RACERS[0]} to {RACERS[-1]}"
        )
    return int(text)


def _version() -> str:
    try:
        return metadata.version(PROG)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _complain(message: str) -> None:
    # One line, whatever a driver or a name put into its message.
    print(f"{PROG}: error: {clean(' '.join(message.split()))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
