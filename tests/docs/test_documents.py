"""Every Python block of every document runs, in order, as one program a document.

A block is run as a reader would have it: from an empty folder, with what the blocks above
it have defined, and with `await` allowed at the top. Two things are put in its place:

- a string that starts with `postgresql://` or `redis://` becomes the URL of a fresh database,
  so that a document shows the URL that a reader would write;
- what a document needs and should not show stands in a comment that starts with
  `<!-- python` on a line of its own; it runs like a block.

Every `$ remit-gates ...` of a console block is one that the command understands. In the
documents of `RUN_COMMANDS` they also run, between the blocks of Python, and end with status 0
or with the one that a comment `# exit status N` names. A line of output that is shown there
and holds no figure is one that was printed.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import inspect
import io
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from remit_gates import cli, otel, set_hooks
from tests.docs.elsewhere import runs_here
from tests.unit.commands import Terminal


ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"(?P<indent>[ ]*)(?P<ticks>`{3,})(?P<language>\w*)")


RUN_COMMANDS = {"operations.md"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of Python or of commands, and the line of its document before its first."""

    source: str
    line: int
    language: str = "python"


def documents() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(path for path in found if path.exists() and runs_here(path))


def blocks(text: str) -> Iterator[Block]:
    """The blocks of `text` that run.

    Raises:
        ValueError: A block has no end, so nobody can say what is in it.
    """
    lines = text.splitlines()
    start, closing, runs = 0, None, ""
    for number, line in enumerate(lines, 1):
        if closing is not None:
            if line.rstrip() == closing:
                if runs:
                    source = textwrap.dedent("\n".join(lines[start : number - 1]))
                    yield Block(source, start, runs)
                closing = None
        elif line.rstrip() == "<!-- python":
            start, closing, runs = number, "-->", "python"
        elif fence := FENCE.match(line):
            closing = fence["indent"] + fence["ticks"]
            start = number
            runs = fence["language"] if fence["language"] in ("python", "console") else ""
    if closing is not None:
        raise ValueError(f"the block that opens in line {start} has no end")


def run(
    text: str, name: str, *, commands: bool = False, **servers: Callable[[], str]
) -> dict[str, Any]:
    """Run the blocks of `text`, and its `commands` if asked to; the names they defined.
    Tracebacks point into `name`. `servers` make a URL, each for the scheme of its name."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    loop = asyncio.new_event_loop()
    try:
        for block in blocks(text):
            if block.language == "console":
                for shown in commands_of(block) if commands else ():
                    perform(shown)
                continue
            tree = _Urls(servers).visit(ast.parse(block.source, name))
            ast.increment_lineno(tree, block.line)
            code = compile(
                tree,
                name,
                "exec",
                flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
                dont_inherit=True,  # a reader's module has no future imports of ours
            )
            if code.co_flags & inspect.CO_COROUTINE:
                # Evaluating such code does not run it yet: it makes the coroutine.
                loop.run_until_complete(eval(code, namespace))
            else:
                exec(code, namespace)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
    return namespace


@dataclass(frozen=True, slots=True)
class Shown:
    """A command as a document shows it, with the status and the output that it shows."""

    words: list[str]
    status: int
    output: list[str]


def commands_of(block: Block) -> Iterator[Shown]:
    """The commands of ours in a console block."""
    for part in re.split(r"^\$ ", block.source, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        if line.startswith("remit-gates "):
            status = re.search(r"# exit status (\d+)", line)
            words = shlex.split(line, comments=True)[1:]
            yield Shown(words, int(status[1]) if status else 0, output.splitlines())


def perform(shown: Shown) -> None:
    """Run a command at a terminal at which somebody says yes."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(out),
        mock.patch.object(sys, "stdin", Terminal("y\n")),
    ):
        status = cli.main(shown.words)
    assert status == shown.status, out.getvalue()
    printed = {
        " ".join(line.rpartition("[y/N] ")[2].split()) for line in out.getvalue().splitlines()
    }
    for line in shown.output:
        if line.strip() and not re.search(r"\d", line.replace("order-", "")):
            assert " ".join(line.split()) in printed, (line, printed)


class _Urls(ast.NodeTransformer):
    """Puts a real server in the place of one that only a document knows."""

    def __init__(self, servers: dict[str, Callable[[], str]]) -> None:
        self.servers = servers

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        scheme = node.value.partition("://")[0] if isinstance(node.value, str) else ""
        if scheme in self.servers:
            return ast.copy_location(ast.Constant(self.servers[scheme]()), node)
        return node


@pytest.mark.parametrize(
    "document", documents(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_document(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)

    namespace = run(
        document.read_text(encoding="utf-8"),
        str(document),
        commands=document.name in RUN_COMMANDS,
        postgresql=lambda: request.getfixturevalue("postgres_url"),
        redis=lambda: request.getfixturevalue("redis_stack_url"),
    )
    # A reader's program ends here, and with it whatever the blocks left open or listening.
    otel.uninstrument()
    set_hooks()
    namespace.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_readme_shows_code() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [block for block in blocks(readme) if block.language == "python"]


@pytest.mark.parametrize(
    "document", documents(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_the_command_understands_what_is_shown(document: Path) -> None:
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language == "console":
            for shown in commands_of(block):
                cli._parser().parse_args(shown.words)


def test_the_runbook_runs() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    shown = [
        shown.words[0]
        for block in blocks(text)
        if block.language == "console"
        for shown in commands_of(block)
    ]
    assert set(shown) == {"doctor", "ls", "show", "release", "prune", "setup"}


DOCUMENT = """\
# A document

<!-- python
hidden = 1
-->

```python
shown = hidden + 1
```

1. In a list:

   ```python title="more.py"
   import asyncio
   await asyncio.sleep(0)
   shown += 1
   url = "postgresql://app@db/orders"
   ```

```console
$ not python
```
"""


def test_blocks_run_in_order_in_one_namespace() -> None:
    namespace = run(DOCUMENT, "document.md", postgresql=lambda: "postgresql://real")

    assert namespace["shown"] == 3
    assert namespace["url"] == "postgresql://real"


def test_a_failing_block_fails_at_its_line_of_the_document() -> None:
    broken = DOCUMENT.replace("shown += 1", "shown += missing")

    with pytest.raises(NameError, match="missing") as failure:
        run(broken, "document.md", postgresql=lambda: "postgresql://real")

    last = failure.traceback[-1]
    assert (str(last.path).endswith("document.md"), last.lineno + 1) == (True, 16)


def test_a_block_that_never_closes_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 3"):
        list(blocks("one\n\n```python\n1 / 0\n"))


def test_a_block_shown_inside_another_does_not_run() -> None:
    assert list(blocks("````text\n```python\n1 / 0\n```\n````\n")) == []


COMMANDS = """\
```console
$ remit-gates setup sqlite:///claims.db
The store is ready.
$ remit-gates show sqlite:///claims.db order-17    # exit status 1: it is not there
$ psql
no output of ours
```
"""


def test_commands_run_where_they_are_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(COMMANDS, "document.md")
    assert list(tmp_path.iterdir()) == []
    run(COMMANDS, "document.md", commands=True)
    assert [path.name for path in tmp_path.iterdir()] == ["claims.db"]


@pytest.mark.parametrize(
    ("shown", "instead"),
    [("is ready", "was ready"), ("# exit status 1", ""), ("status 1", "status 2")],
)
def test_what_is_shown_of_a_command_is_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, instead: str
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = COMMANDS.replace(shown, instead)
    with pytest.raises((AssertionError, SystemExit)):
        run(wrong, "document.md", commands=True)
