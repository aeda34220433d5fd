"""A probe that cannot fail is worth nothing: each must fail on the fault that it is for.

The reference framework keeps the contract; each of its mutants breaks one thing, and must
fail exactly the properties named here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from remit_gates.contract._envs import import_path
from remit_gates.contract._line import Target
from remit_gates.contract._measure import measure
from remit_gates.contract._model import Profile


BREAKS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(),
    "replay": frozenset({"PC", "EO"}),
    "prefix_replay": frozenset({"PC"}),
    "initial_values": frozenset({"PC"}),
    "lazy_persist": frozenset({"EO"}),
    "ignored_fork": frozenset({"FD"}),
    "invalid_persist": frozenset({"CV"}),
    "invalid_edit": frozenset({"CV"}),
    "nondeterministic_recovery": frozenset({"RD"}),
    "double_consume": frozenset({"CO-c"}),
    "no_lock": frozenset({"CO-c", "CO-e"}),
    "unbound": frozenset({"CO-c", "CO-e"}),
    "fork_is_retry": frozenset({"FI"}),
    "retry_is_fork": frozenset({"FI", "CO-e"}),
    "refuses_forever": frozenset({"LV"}),
}
"""What each mutant of the reference must fail, and nothing else."""


def mutant(name: str, say: Callable[[str], None] = lambda _: None) -> Profile:
    """The profile of one mutant; of the reference itself for an empty name."""
    with import_path() as path:
        target = Target(
            module="remit_gates.contract.drivers.reference",
            python=sys.executable,
            backend="file",
            options={"mutant": name},
            path=(path,),
        )
        return measure(target, racers=3, tries=1, patience=0.4, say=say)


def wrong(name: str, profile: Profile) -> list[str]:
    """What is not as it must be, a line each."""
    violated, told = profile.violated(), profile.judgements
    missed = [f"{each} was not found: {told[each]}" for each in sorted(BREAKS[name] - violated)]
    extra = [
        f"{each} was found where nothing is broken: {told[each]}"
        for each in sorted(violated - BREAKS[name])
    ]
    unmeasured = [
        f"{each} was not measured: {judgement.figure}"
        for each, judgement in told.items()
        if judgement.verdict == "not measured"
    ]
    return missed + extra + unmeasured
