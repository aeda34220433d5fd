"""Consume-once, in its two halves, and in the three ways in which deliveries meet.

A consumption is the asking step taking an answer, an effect is what follows from it; they
are counted apart, since either can go wrong alone.
"""

from __future__ import annotations

from collections import Counter

from remit_gates.contract._lab import Lab, Play


def consume_sequential(lab: Lab) -> None:
    """CO, one after the other: the second delivery comes when the first is over."""
    with lab.scene("answered, to the end; then answered again", "approval", "CO-c", "CO-e") as play:
        pause = play.parked()
        play.do("answer", value="yes", delivery="d1", handle=pause)
        play.do("answer", value="yes", delivery="d2", handle=pause)
        _consumed(play, "sequentially", 2)


def consume_late(lab: Lab) -> None:
    """CO, late: the second delivery comes while the first runs, or the next question waits."""
    title = "a second answer while the first one's b runs"
    with lab.scene(title, "approval", "CO-c", "CO-e") as play:
        pause, hold = play.parked(), [play.hold("b")]
        first = play.order("answer", value="yes", delivery="d1", handle=pause, faults=hold)
        play.held("b", first)
        second = play.order("answer", value="yes", delivery="d2", handle=pause, faults=hold)
        play.until(lambda: second.over or play.count("held")["b"] > 1, "what the second one does")
        play.let_go("b")
        first.wait()
        second.wait()
        _consumed(play, "late", 2)
    title = "the same message again, when the next question waits"
    with lab.scene(title, "twice", "CO-c", "CO-e") as play:
        pause = play.parked()
        for _ in range(2):
            play.do("answer", value="yes", delivery="d1", handle=pause)
        took, fired = play.count("took"), play.count("effect")
        play.saw(
            f"ask took {took['ask']}, ask2 took {took['ask2']}; b {fired['b']}, c {fired['c']}"
        )
        if took["ask2"]:
            play.fault("CO-c", "late, it answered the next question")
        elif took["ask"] > 1:
            play.fault("CO-c", f"late, {took['ask']} of 2 took the answer")
        if fired["c"] or fired["b"] > 1:
            play.fault("CO-e", f"late, b {fired['b']}x and c {fired['c']}x after one answer")


def consume_concurrent(lab: Lab) -> None:
    """CO, at once: k deliveries in k processes, let go together."""
    for turn in range(1, min(lab.tries, 3) + 1):
        title = f"{lab.racers} answers at once (try {turn})"
        with lab.scene(title, "approval", "CO-c", "CO-e") as play:
            pause = play.parked()
            racers = [
                play.order("answer", wait=True, value="yes", delivery=f"d{number}", handle=pause)
                for number in range(1, lab.racers + 1)
            ]
            for racer in racers:
                racer.ready()
            for racer in racers:
                racer.go()
            for racer in racers:
                racer.wait()
            _consumed(play, "at once", lab.racers)


def _consumed(play: Play, when: str, deliveries: int) -> None:
    took, fired = play.count("took")["ask"], play.count("effect")["b"]
    outcomes = Counter(
        pending.call.outcome for pending in play._pending if pending.call.verb == "answer"
    )
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    play.saw(f"{deliveries} deliveries ({told}): {took} took the answer, b fired {fired}x")
    if took > 1:
        play.fault("CO-c", f"{when}, {took} of {deliveries} took it")
    if fired > 1:
        play.fault("CO-e", f"{when}, b fired {fired}x for {deliveries}")
