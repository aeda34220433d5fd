"""The command `remit-gates`. A failure is one line on the standard error and an exit
status: 2 when the call cannot mean anything, 1 when what it asked for was not done."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import metadata
from typing import Final, NoReturn

from remit_gates import open_store, release
from remit_gates._demo.main import RACERS, demo
from remit_gates.errors import RemitError, UsageError


PROG: Final = "remit-gates"

_URL: Final = "the store, such as sqlite:///claims.db or postgresql://..."


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others here."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{message} (see {self.prog} --help)")
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv`, or with the process's own arguments; the exit status."""
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except UsageError as error:
        _complain(str(error))
        return 2
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


def _demo(arguments: argparse.Namespace) -> int:
    return demo(arguments.racers, arguments.store, arguments.json)


def _setup(arguments: argparse.Namespace) -> int:
    with closing(open_store(arguments.url)) as store:
        store.setup()
    print("The store is ready.")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    with closing(open_store(arguments.url)) as store:
        released = release(
            store,
            arguments.run_id,
            framework=arguments.framework,
            namespace=arguments.namespace,
            pause=arguments.pause,
            actor=arguments.actor,
            reason=arguments.reason,
        )
    name = f"{arguments.framework}:{arguments.namespace}/{arguments.run_id}"
    if not released:
        _complain(f"{name} has nothing to release: look at the run, framework and namespace")
        return 1
    print(f"{name} may be answered again.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROG, description="One pause, one answer, one continuation.")
    parser.add_argument("--version", action="version", version=f"{PROG} {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

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

    ready = commands.add_parser(
        "setup",
        help="create the table of a store, or bring it up to date",
        description="Create the table of a store, or bring it up to date. Harmless if repeated.",
    )
    ready.add_argument("url", metavar="URL", help=_URL)
    ready.set_defaults(run=_setup)

    free = commands.add_parser(
        "release",
        help="let what did not finish be answered again",
        description="Let the pauses of a run that failed or was abandoned be answered again. A"
        " run that is being served is refused.",
    )
    free.add_argument("url", metavar="URL", help=_URL)
    free.add_argument("run_id", metavar="RUN", help="the framework's name of the run")
    free.add_argument(
        "--framework", default="langgraph", help="the adapter it belongs to (default: langgraph)"
    )
    free.add_argument("--namespace", default="", help="the gate's namespace (default: empty)")
    free.add_argument("--pause", help="only this pause (default: every unfinished one)")
    free.add_argument("--actor", help="who releases, for the record")
    free.add_argument("--reason", help="why, for the record")
    free.set_defaults(run=_release)
    return parser


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
    # One line, whatever a driver put into its message.
    print(f"{PROG}: error: {' '.join(message.split())}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
