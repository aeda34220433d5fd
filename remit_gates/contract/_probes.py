"""One function a property: what is run, and what it must come to.

A probe knows no framework. It gives orders and reads the ledger; a scene may say something
about several properties, and then each is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from remit_gates.contract._consume import consume_concurrent, consume_late, consume_sequential
from remit_gates.contract._lab import Lab, Play
from remit_gates.contract._order import DriverFailed


def prefix_continuation(lab: Lab) -> None:
    """PC: nothing at or below the durable frontier runs again, and nothing there is lost."""
    for how in ("SIGKILL", "an exception"):
        title = f"{how} in c, once a and b are durably finished; then go on"
        with lab.scene(title, "approval", "PC") as play:
            if how == "SIGKILL":
                play.needs_processes()
            play.parked()
            ending = [play.hold("c")] if how == "SIGKILL" else [_raise("c")]
            served = play.order("answer", value="yes", delivery="d1", faults=ending)
            if how == "SIGKILL":
                play.held("c", served)
                frontier = play.frontier({"a", "b"})
                served.kill()
                play.let_go("c")
            else:
                served.wait()
                frontier = play.frontier({"a", "b"})
            _recovered(play, frontier)
    with lab.scene("an answer, once a is durably finished", "approval", "PC") as play:
        play.parked()
        frontier = play.frontier({"a"})
        before = len(play.marks())
        play.do("answer", value="yes", delivery="d1")
        _prefix(play, frontier, before)


def _recovered(play: Play, frontier: set[str]) -> None:
    before = len(play.marks())
    play.recover()
    _prefix(play, frontier, before)
    found = [mark.value for mark in play.marks()[before:] if (mark.kind, mark.step) == ("ran", "c")]
    if "b" in frontier and any(value != "yes" for value in found):
        play.fault("PC", f"c went on with {found[0]!r} in place of the answer")


def _prefix(play: Play, frontier: set[str], before: int) -> None:
    ran = play.count("ran", before)
    again = {step: ran[step] for step in sorted(frontier & set(ran))}
    play.saw(f"durably finished: {_list(frontier)}; ran afterwards: {_list(ran)}")
    if again:
        play.fault("PC", f"{_list(again)} ran again")


def effect_once(lab: Lab) -> None:
    """EO: the effect of a finished step fires at most once."""
    with lab.scene("an answer", "approval", "EO") as play:
        play.parked()
        play.do("answer", value="yes", delivery="d1")
        _effects(play, ("a", "b", "c"), "after an answer")
    with lab.scene("an exception in c, after a and b; then go on", "plain", "EO") as play:
        play.do("start", faults=[_raise("c")])
        play.recover()
        _effects(play, ("a", "b"), "after an exception")
    with lab.scene("SIGKILL as c begins, a and b just finished; then go on", "plain", "EO") as play:
        play.needs_processes()
        run, worst, bad = play.run, Counter[str](), 0
        for turn in range(1, lab.tries + 1):
            play.run = f"{run}-{turn}"
            play.do("start", faults=[_kill("c")])
            play.recover()
            fired = _counted(play, ("a", "b"))
            bad += max(fired["a"], fired["b"]) > 1
            worst |= fired
            play.keep()
        if bad:
            times = ", ".join(f"{step} fired {worst[step]}x" for step in "ab" if worst[step] > 1)
            play.fault("EO", f"{times} after SIGKILL, in {bad} of {lab.tries} tries")
    with lab.scene("SIGKILL as c begins, after an answer; then go on", "approval", "EO") as play:
        play.needs_processes()
        play.parked()
        play.do("answer", value="yes", delivery="d1", faults=[_kill("c")])
        play.recover()
        _effects(play, ("a", "b"), "after an answer and SIGKILL")
    for how, fault in (("an exception", _raise), ("SIGKILL", _kill)):
        with lab.scene(f"for the record: {how} in c; then the same start again", "plain") as play:
            if how == "SIGKILL":
                play.needs_processes()
            play.do("start", faults=[fault("c")])
            play.do("start")
            _counted(play, ("a", "b"))


def _effects(play: Play, steps: Sequence[str], when: str) -> None:
    fired = _counted(play, steps)
    twice = {step: fired[step] for step in steps if fired[step] > 1}
    if twice:
        play.fault("EO", ", ".join(f"{step} fired {n}x" for step, n in twice.items()) + f" {when}")


def _counted(play: Play, steps: Sequence[str]) -> Counter[str]:
    fired = play.count("effect")
    play.saw("effects: " + ", ".join(f"{step} {fired[step]}" for step in steps))
    return fired


def fork_determinism(lab: Lab) -> None:
    """FD: a deliberate fork is served its own answer, whatever was recorded before."""
    with lab.scene(
        "answered yes to the end; then a fork at the question, no", "approval", "FD"
    ) as play:
        pause = play.parked()
        play.do("answer", value="yes", delivery="d1")
        first = len(play.marks())
        reply = play.do("fork", value="no", delivery="d2", handle=pause)
        if reply["outcome"] == "refused":
            play.saw("the fork was refused")
            play.scene.skipped = "every fork is refused"
            return
        values = [m.value for m in play.marks()[first:] if (m.kind, m.step) == ("effect", "b")]
        play.saw(f"in the fork, b fired with {values}")
        if values != ["no"]:
            got = f"b fired with {values[0]!r}" if values else "b never fired"
            play.fault("FD", f"answer 'no', {got}")


def checkpoint_validity(lab: Lab) -> None:
    """CV: state that does not fit its schema is never persisted silently."""
    for what in ("a step writes", "an edit writes"):
        program = "invalid" if what.startswith("a step") else "approval"
        with lab.scene(f"{what} a word where the schema has a number", program, "CV") as play:
            if program == "invalid":
                reply = play.do("start")
            else:
                play.parked()
                reply = play.do("edit_invalid")
            stands = play.look()
            silent = reply["outcome"] == "ok"
            there = not stands["valid"]
            play.saw(f"the call {'returned' if silent else 'failed'}; persisted: {there}")
            if silent and there:
                play.fault("CV", f"{what} it silently")


def recovery_determinism(lab: Lab) -> None:
    """RD: equal durable state, written in another order, gives the same recovery."""
    title = "branches p and q finish in both orders; SIGKILL in j; then go on"
    with lab.scene(title, "fan", "RD") as play:
        play.needs_processes()
        run, decided, states = play.run, [], []
        for slow in ("q", "p"):
            play.run = f"{run}-{slow}"
            began = play.order("start", faults=[play.hold(slow), play.hold("j")])
            play.held(slow, began)
            fast = "p" if slow == "q" else "q"
            play.until(lambda: bool(play.count("effect")[fast]) or began.over, f"{fast} fires")  # noqa: B023
            # Where a branch that is done shows before its stage is, it is waited for.
            play.frontier({fast}, 1.0)
            play.let_go(slow)
            play.held("j", began)
            states.append(play.frontier({"p", "q"}))
            began.kill()
            play.let_go("j")
            before = len(play.marks())
            play.go_on()
            after = [m for m in play.marks()[before:] if m.kind == "ran"]
            decided.append(sorted((m.step, str(m.value)) for m in after))
            play.keep()
        play.saw(f"p first: recovery ran {decided[0]}; q first: {decided[1]}")
        if states[0] != states[1]:
            raise DriverFailed("the durable states were not equal")
        if decided[0] != decided[1]:
            play.fault("RD", f"ran {decided[0]} or {decided[1]}")


def fork_intent(lab: Lab) -> None:
    """FI: the interface can tell a retry from a fork."""
    title = "answered to the end; the same answer to the same pause again; then a fork there"
    with lab.scene(title, "approval", "FI") as play:
        pause = play.parked()
        play.do("answer", value="yes", delivery="d1", handle=pause, bound=True)
        before = len(play.marks())
        play.do("answer", value="yes", delivery="d1", handle=pause, bound=True)
        retried = play.count("effect", before)["b"]
        before = len(play.marks())
        reply = play.do("fork", value="no", delivery="d2", handle=pause)
        forked = play.count("effect", before)["b"]
        play.saw(f"the retry fired b {retried}x, the fork {forked}x")
        if retried:
            play.fault("FI", "a retry is taken for a fork")
        elif not forked:
            told = "is refused as a retry" if reply["outcome"] == "refused" else "did nothing"
            play.fault("FI", f"a fork {told}")


def liveness(lab: Lab) -> None:
    """Liveness: a parked run that gets an answer finishes, whatever happened on the way."""
    with lab.scene("an answer", "approval", "LV") as play:
        play.parked()
        play.do("answer", value="yes", delivery="d1")
        _finished(play, "an answer")
    with lab.scene("an exception in b; then go on", "approval", "LV") as play:
        play.parked()
        play.do("answer", value="yes", delivery="d1", faults=[_raise("b")])
        play.recover()
        _finished(play, "an exception")
    with lab.scene("SIGKILL in b; then go on", "approval", "LV") as play:
        play.needs_processes()
        play.parked()
        play.do("answer", value="yes", delivery="d1", faults=[_kill("b")])
        play.recover()
        _finished(play, "SIGKILL")


def _finished(play: Play, after: str) -> None:
    status = play.look()["status"]
    fired = play.count("effect")
    play.saw(f"the run is {status}; b fired {fired['b']}x, c {fired['c']}x")
    if status != "finished":
        play.fault("LV", f"{status} for good after {after}")


def _raise(step: str) -> dict[str, str]:
    return {"kind": "raise", "step": step}


def _kill(step: str) -> dict[str, str]:
    return {"kind": "kill", "step": step}


def _list(steps: Any) -> str:
    return ", ".join(sorted(steps)) or "nothing"


PROBES: Final[tuple[Callable[[Lab], None], ...]] = (
    prefix_continuation,
    effect_once,
    fork_determinism,
    checkpoint_validity,
    consume_sequential,
    consume_late,
    consume_concurrent,
    recovery_determinism,
    fork_intent,
    liveness,
)
