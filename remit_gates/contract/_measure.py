"""A profile is every probe, one after the other, on one target."""

from __future__ import annotations

import datetime
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from remit_gates.contract._lab import Lab
from remit_gates.contract._line import Line, Target
from remit_gates.contract._model import PROPERTIES, Judgement, Profile, judged
from remit_gates.contract._order import DriverFailed
from remit_gates.contract._probes import PROBES


def measure(
    target: Target,
    *,
    racers: int = 4,
    tries: int = 10,
    patience: float = 3.0,
    say: Callable[[str], None] = lambda _: None,
) -> Profile:
    """Put `target` to every probe.

    Args:
        target: What to measure.
        racers: How many deliveries race.
        tries: How often to play what may come out either way.
        patience: Seconds to wait for a framework to write what it has finished.
        say: Told of each probe before it begins.

    Raises:
        DriverFailed: The driver cannot be started, or says that it cannot be measured.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="remit-gates-contract-"))
        with closing(Line(target, Path(folder))) as line:
            lab = Lab(line, racers=racers, tries=tries, patience=patience)
            lab.about = _asked(line, "describe")
            why = lab.about.get("gate") if target.gated else None
            if why:
                return _profile(
                    lab,
                    target,
                    began,
                    dict.fromkeys(PROPERTIES, Judgement("not applicable", str(why))),
                )
            _asked(line, "setup")
            for number, probe in enumerate(PROBES, 1):
                say(f"{probe.__name__.replace('_', ' ')} ({number} of {len(PROBES)})")
                probe(lab)
    return _profile(lab, target, began, {name: judged(name, lab.scenes) for name in PROPERTIES})


def _profile(lab: Lab, target: Target, began: float, judgements: dict[str, Judgement]) -> Profile:
    return Profile(
        framework=str(lab.about["framework"]),
        version=str(lab.about["version"]),
        backend=target.label or target.backend,
        column="gated" if target.gated else "stock",
        python=str(lab.about.get("python", "")),
        packages=lab.about.get("packages", {}),
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        seconds=round(time.monotonic() - began, 1),
        racers=lab.racers,
        tries=lab.tries,
        judgements=judgements,
        scenes=lab.scenes,
    )


def _asked(line: Line, verb: str) -> dict[str, Any]:
    pending = line.order(verb)
    reply = pending.wait(120.0)
    if reply["outcome"] != "ok":
        raise DriverFailed(f"{verb}: {pending.call.said or line.last_words()}")
    value: dict[str, Any] = reply["value"] or {}
    return value
