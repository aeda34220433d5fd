"""What TLC checks: the models, their bounds, and what it must find.

A model that must hold stands beside broken twins that must not: each invariant of the gate is
refuted by at least one, and the run fails when a twin is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final

from tlc import Check, Value, some


NOBODY: Final[frozenset[str]] = frozenset()

# The contract. A fault, and the properties that it breaks; it breaks no other.
FAULTS: Final[Mapping[str, frozenset[str]]] = {
    "replay": some("PC", "EO", "CO"),
    "ignored fork": some("FD"),
    "invalid persist": some("CV"),
    "unordered": some("RD"),
    "double consume": some("EO", "CO"),
    "prefix replay": some("PC", "EO", "CO"),
    "rebuilt": some("PC"),
    # The obligations: fork intent either way round, and liveness.
    "retry is fork": some("FI", "CO"),
    "fork is retry": some("FI"),
    "refuse all": some("Live"),
}

PROPERTIES: Final = ("PC", "EO", "FD", "CV", "CO", "RD")
OBLIGATIONS: Final = ("FI", "Live")
NAMES: Final = (*PROPERTIES, *OBLIGATIONS)

RECOVERY: Final = ("PC", "EO", "RD")


def counted(fault: str, name: str) -> bool:
    """Whether a cell is one of the 39 of the matrix: six faults by six properties, and the state
    that is rebuilt by the three properties of recovery. All others are run and compared alike."""
    if FAULTS[fault] & {*OBLIGATIONS}:
        return False
    return name in (RECOVERY if fault == "rebuilt" else PROPERTIES)


SMALL: Final[Mapping[str, Value]] = {"Steps": 2, "Gates": frozenset({2})}
"""Bounds at which liveness is checked, which takes far longer than the rest."""


def contract() -> Iterator[Check]:
    yield Check("the reference", "ResumeContract")
    yield Check("the reference, live", "ResumeContract", SMALL, (), ("Live",), "FairSpec")
    yield Check("recovery", "ResumeRecovery", properties=("Live",))
    yield Check("consumption", "ResumeConsumption", properties=("Live",))


def companions() -> Iterator[tuple[Check, frozenset[str]]]:
    """Models of the companion modules, each with the properties that fail in it."""
    for fault, alone in (("no key", "EO"), ("replay", "PC"), ("unordered", "RD")):
        check = Check(f"{alone} alone", "ResumeRecovery", {"Fault": some(fault)})
        yield check, some(alone)
    for name, faults, broken in (
        ("CO-c alone", some("look then take"), some("COc")),
        ("CO-e without CO-c", some("no key"), some("EO", "COe")),
        ("stock", some("look then take", "each runs", "no key"), some("EO", "COc", "COe")),
    ):
        yield Check(name, "ResumeConsumption", {"Fault": faults}), broken


# The gate.
def gate(name: str, **constants: Value) -> Check:
    return Check(name, "ResumeGate", constants)


def safety() -> Iterator[Check]:
    """The gate as it is, each model about one kind of trouble, with four deliveries or more
    in those about racing."""
    four = some("a1", "a2", "a3", "a4")
    yield gate("racers at two questions, a recovery, a crash")
    yield gate(
        "four copies, a crash, a lost answer",
        Firsts=four,
        Seconds=NOBODY,
        Continues=NOBODY,
        Losses=1,
    )
    yield gate(
        "copies of one message, a lost answer",
        Firsts=some("a1"),
        Seconds=NOBODY,
        Marked=some("m1", "m2"),
        Continues=NOBODY,
        Losses=1,
    )
    yield gate(
        "bare answers, a recovery",
        Firsts=some("a1"),
        Seconds=NOBODY,
        Bares=some("b1"),
    )
    yield gate(
        "three continues at breakpoints, a crash",
        Firsts=NOBODY,
        Seconds=NOBODY,
        Continues=some("c1", "c2", "c3"),
        Breaks=frozenset({1, 2}),
    )
    yield gate("failures, a lost answer, hold", Seconds=NOBODY, Failures=1, Losses=1, Crashes=0)
    yield gate(
        "failures, a crash, serve and retry",
        OnFailure="retry",
        OnAbandoned="serve",
        Continues=NOBODY,
        Failures=1,
    )
    yield gate("an operator, a crash", Seconds=NOBODY, Releases=1)


def policies() -> Iterator[tuple[str, dict[str, Value]]]:
    """Every choice that a policy leaves and the protocol sees."""
    names = ("OnConflict", "OnFailure", "OnAbandoned", "AnswersPolicy")
    for choice in product(
        ("refuse", "wait"), ("hold", "retry"), ("refuse", "serve"), ("any", "bound")
    ):
        yield ", ".join(choice), {**dict(zip(names, choice, strict=True))}


def every_policy() -> Iterator[Check]:
    """Safety under each policy, a bare answer among the deliveries."""
    for name, policy in policies():
        yield gate(name, **racers(policy), Seconds=NOBODY, Failures=1, **policy)


def racers(policy: Mapping[str, Value]) -> dict[str, Value]:
    """Two that may be served, and where a bare answer may not, a bare one as well."""
    first = some("a1", "a2") if policy["AnswersPolicy"] == "bound" else some("a1")
    return {"Firsts": first, "Bares": some("b1"), "Continues": NOBODY}


def liveness() -> Iterator[Check]:
    """Under each policy, every delivery comes to an end, and a run that is answered goes on
    whoever fails or dies, as long as people come again."""
    for name, policy in policies():
        few: dict[str, Value] = {"Firsts": some("a1"), "Seconds": NOBODY, **policy}
        bound = policy["AnswersPolicy"] == "bound"
        ends: dict[str, Value] = {**few, "Bares": some("b1"), "Continues": NOBODY}
        yield live(f"{name}: ends", "Ends", {**ends, "Failures": 1, "Lapses": 1})
        # A bare answer that is refused each time, and comes again, keeps nobody out.
        again: dict[str, Value] = {**few, "Failures": int(not bound), **recovered(policy)}
        again["Bares"] = some("b1") if bound else NOBODY
        yield live(f"{name}: goes on", "Passes", again)


def recovered(policy: Mapping[str, Value]) -> dict[str, Value]:
    """People who come again, and unless the policy recovers by itself, one who continues."""
    alone = policy["OnAbandoned"] == "serve" and policy["OnFailure"] == "retry"
    return {"Continues": NOBODY if alone else some("c1"), "Resends": True, "Lapses": 0}


def wider_liveness() -> Iterator[Check]:
    """The same where every answer names its question, with more that may go wrong."""
    for name, policy in policies():
        if policy["AnswersPolicy"] == "bound":
            few: dict[str, Value] = {"Seconds": NOBODY, "Failures": 1, **policy}
            yield live(f"{name}: ends", "Ends", {**few, **racers(policy), "Lapses": 1})
            again = {**few, "Firsts": some("a1"), "Bares": some("b1"), **recovered(policy)}
            yield live(f"{name}: goes on", "Passes", again)


def live(name: str, what: str, constants: Mapping[str, Value], refutes: str | None = None) -> Check:
    return Check(name, "ResumeGate", constants, (), (what,), "FairSpec", refutes)


def full() -> Iterator[Check]:
    """More of the same, for those who have the time."""
    for check in scaled():
        yield replace(check, big=True)


def scaled() -> Iterator[Check]:
    bounds: dict[str, Value] = {"Steps": 4, "Forks": 2, "Misfits": 2}
    yield Check("the reference, scaled", "ResumeContract", bounds)
    four = some("a1", "a2", "a3", "a4")
    yield gate("four answers, a recovery, a crash", Firsts=four, Seconds=NOBODY)
    yield gate("racers at two questions, a crash, a lost answer", Losses=1)
    yield gate("an operator, a lost answer", Seconds=NOBODY, Releases=1, Losses=1, Crashes=0)
    yield gate(
        "bare answers and messages, a crash",
        Firsts=some("a1"),
        Seconds=NOBODY,
        Marked=some("m1"),
        Bares=some("b1"),
    )
    yield gate(
        "four continues at breakpoints, a crash",
        Firsts=NOBODY,
        Seconds=NOBODY,
        Continues=some("c1", "c2", "c3", "c4"),
        Breaks=frozenset({1, 2}),
    )
    trouble: dict[str, Value] = {"Losses": 1, "Failures": 1, "Seconds": NOBODY}
    yield gate("a crash, a failure, a lost answer: hold", **trouble)
    yield gate(
        "a crash, a failure, a lost answer: retry",
        OnFailure="retry",
        OnAbandoned="serve",
        **trouble,
    )
    yield gate("an operator, a crash, a lost answer", Seconds=NOBODY, Releases=1, Losses=1)
    yield from wider_liveness()
    yield live("the whole run", "Finishes", {"Firsts": some("a1"), "Resends": True, "Lapses": 0})


def twins() -> Iterator[Check]:
    """Gates that lack one point of the protocol. TLC must refute each."""
    two: dict[str, Value] = {"Seconds": NOBODY, "Continues": NOBODY, "Crashes": 0}
    breaks: dict[str, Value] = {
        "Firsts": NOBODY,
        "Seconds": NOBODY,
        "Continues": some("c1", "c2"),
        "Breaks": frozenset({1, 2}),
        "Crashes": 0,
    }
    copies: dict[str, Value] = {**two, "Firsts": NOBODY, "Marked": some("m1", "m2")}
    takeover: dict[str, Value] = {**two, "OnAbandoned": "serve"}
    late: dict[str, Value] = {**two, "ReadFirst": False, "Ledger": False}
    yield twin("no fence", "NoStray", **takeover, Fence=False)
    yield twin("no version check", "AtMostOnce", **two, VersionCheck=False)
    yield twin("no version check", "Once", **two, VersionCheck=False)
    yield twin("a continue that loads before it reads", "FreshLoad", **breaks, ReadFirst=False)
    yield twin("a continue that loads before it reads", "Once", **breaks, ReadFirst=False)
    yield twin("load before read, and no ledger", "AtMostOnce", **late)
    yield twin("a lease on the client's clock", "OneHolder", **takeover, StoreClock=False)
    yield twin("no delivery id", "NoStale", **copies, Ids=False)
    bare = {**two, "Firsts": some("a1"), "Bares": some("b1")}
    yield twin("bare answers", "NoStale", **bare, BareToo=True)
    yield twin(
        "a lost answer taken for a refusal", "LosersWriteNothing", **two, Losses=1, Reread=False
    )
    yield twin(
        "a withdrawal that gives its token back", "TokensGrow", **two, Failures=1, KeepToken=False
    )
    alone: dict[str, Value] = {**two, "Firsts": some("a1"), "Resends": True, "Lapses": 0}
    yield live("nobody who recovers", "Passes", {**alone, "Crashes": 1}, "Passes")
    bound: dict[str, Value] = {**alone, "AnswersPolicy": "bound"}
    yield live("a name that is not heard", "Passes", {**bound, "Binds": False}, "Passes")
    unnamed = {**bound, "Firsts": NOBODY, "Bares": some("b1")}
    yield live("nobody who names the question", "Passes", unnamed, "Passes")


def twin(name: str, refutes: str, **constants: Value) -> Check:
    return Check(name, "ResumeGate", constants, (refutes,), refutes=refutes)


def harmless() -> Iterator[Check]:
    """Two defences cover each other: either alone keeps every invariant."""
    four = some("a1", "a2", "a3", "a4")
    who: dict[str, Value] = {"Firsts": four, "Seconds": NOBODY, "Continues": NOBODY, "Losses": 1}
    yield gate("load before read, with the ledger", **who, ReadFirst=False)
    yield gate("no ledger, but read before load", **who, Ledger=False)
