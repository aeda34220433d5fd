"""What must hold in every world that can be reached, and after every step into one."""

from __future__ import annotations

from collections.abc import Sequence

from remit_gates._model import Intent, Phase, Record
from remit_gates.errors import RemitError
from tests.proofs.flows import Held
from tests.proofs.world import PLACES, Process, Scenario, World, holder


def standing(
    scenario: Scenario, world: World, record: Record, passages: Sequence[Held]
) -> str | None:
    """The invariant that `world` breaks, if it breaks one."""
    return (
        world.breach
        or _consumed(scenario, world)
        or _ran(scenario, world)
        or _held(world, record, passages)
    )


def refusing(scenario: Scenario) -> bool:
    policy = scenario.policy
    return policy.on_abandoned == "refuse" and policy.on_failure == "hold"


def _consumed(scenario: Scenario, world: World) -> str | None:
    """(a) Each pause is consumed at most once, unless it was asked again."""
    if not refusing(scenario):
        return None
    for place, reopened in enumerate(world.reopened):
        if world.served[place] > 1 + reopened:
            return f"(a) pause {PLACES[place]} was consumed twice"
    return None


def _ran(scenario: Scenario, world: World) -> str | None:
    """(b) A node runs once for an answer, and once more for each later attempt, which has a
    token of its own. (c) No answer is applied at a pause that it was not meant for."""
    for place, reopened in enumerate(world.reopened):
        runs = [run for run in world.runs if run.place == place]
        tokens = {run.token for run in runs}
        if len(tokens) < len(runs):
            return f"(b) the node of {PLACES[place]} ran twice under one token"
        answers = {run.answer for run in runs if run.intent is Intent.ANSWER}
        # Copies of one message, each served after the one before it failed, are one answer.
        messages = {scenario.deliveries[who].id or who for who in answers}
        if refusing(scenario) and len(messages) > 1 + reopened:
            return f"(b) the node of {PLACES[place]} ran for two answers"
    for run in world.runs:
        spec = scenario.deliveries[run.answer]
        if spec.meant != run.place and (spec.bound or scenario.bare_too):
            return f"(c) {spec.name}'s answer was applied at {PLACES[run.place]}"
    return None


def counts(held: Held) -> bool:
    """Whether a claim consumes a pause anew: it is an answer, and not another copy of the
    message whose run failed."""
    return held.claim.intent is Intent.ANSWER and not any(
        entry.phase is Phase.FAILED and entry.delivery == held.delivery.id is not None
        for pause in held.claim.pauses
        if (entry := held.before.closed(pause)) is not None
    )


def _held(world: World, record: Record, passages: Sequence[Held]) -> str | None:
    """(d) At most one process believes that its lease lives, and the store agrees with it.
    (g) It knows its own token."""
    believers = [
        (who, passages[process.held])
        for who, process in enumerate(world.processes)
        if process.held is not None and process.stage != "leaving" and _believes(process)
    ]
    if len(believers) > 1:
        return "(d) two holders at once"
    for who, held in believers:
        claim = record.claim
        if claim is None or claim.holder != holder(who) or not world.left:
            return "(d) a holder believes in a lease that has ended"
        if claim.token != held.claim.token:
            return "(g) a holder has another token than the store knows"
    return None


def _believes(process: Process) -> bool:
    return process.moving is not None and process.moving.deadline > 0


def on_swap(before: Record, after: Record) -> str | None:
    """(i) A token that was granted is never granted again."""
    return "(i) the last token went back" if after.token < before.token else None


def on_end(world: World, who: int, record: Record) -> str | None:
    """(e) A delivery that was told that it did not land has left nothing behind.

    One exception: its claim landed unknown to it and lapsed, and whoever took that over
    withdrew, which puts it back as dead as it was.
    """
    mine = holder(who)
    if record.claim is not None and record.claim.holder == mine:
        return "(e) a refused delivery holds the run" if world.left else None
    if any(e.holder == mine and e.phase is Phase.RUNNING for e in record.consumptions):
        return "(e) a refused delivery has consumed a pause"
    if any(who == writer for _, _, writer in world.adrift):
        return "(e) a refused delivery's swap may still land"
    return None


def on_error(error: type[BaseException]) -> str | None:
    """(j) A flow ends in an error of ours, or in what interrupted it."""
    expected = issubclass(error, (RemitError, KeyboardInterrupt))
    return None if expected else f"(j) a flow ended in {error.__name__}"


def on_run(seen: int | None, place: int) -> str | None:
    """(c) A bare answer is applied only where the run waited when it first looked."""
    if seen is not None and seen != place:
        return f"(c) a bare answer that had looked at {PLACES[seen]} was applied at {PLACES[place]}"
    return None


def on_write(who: int, record: Record) -> str | None:
    """(f) A write that the fence let through is the holder's."""
    if record.claim is None or record.claim.holder != holder(who):
        return "(f) a write of a replaced holder landed"
    return None


def on_left(token: int, record: Record) -> str | None:
    """(h) A passage that is told that it left was not replaced by an operator."""
    entry = record.by_token(token)
    if entry is not None and entry.outcome is not None and entry.outcome.state == "released":
        return "(h) leaving was reported for a claim that an operator released"
    return None
