"""Scenarios in which deliveries are judged by the adapters: a few in each run of the
suite, and all of them, under every policy, in `make prove`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from tests.proofs.adapters import LangGraphScenario
from tests.proofs.others import CrewAIScenario, PydanticGraphScenario
from tests.proofs.scenarios import (
    BARE,
    GO_ON,
    NEXT,
    SENT,
    SENT_AGAIN,
    SERVE,
    TWIN,
    A,
    Case,
    ends,
    policy,
)
from tests.proofs.world import Scenario


ADAPTED: Final[dict[str, Case]] = {
    "two racers": Case(LangGraphScenario((A, TWIN)), "AB", ends(B="consumed in_progress")),
    "a recovery": Case(
        LangGraphScenario((A, GO_ON), crashes=1), "AC", ends(A="abandoned", C="superseded")
    ),
    "a bare answer": Case(LangGraphScenario((A, BARE)), "AR", ends(R="consumed")),
    "two questions of one node": Case(LangGraphScenario((A, NEXT), SERVE, inside=True), "AN"),
    "two questions of one node, of one name": Case(
        LangGraphScenario((SENT, SENT_AGAIN), inside=True, ordinal=False),
        "XY",
        ends(Y="consumed"),
    ),
    "a message that comes again after a failure": Case(
        LangGraphScenario((SENT, SENT_AGAIN), falters=True, releases=1, ticks=False), "XY"
    ),
    "CrewAI: two racers": Case(CrewAIScenario((A, TWIN)), "AB", ends(B="consumed in_progress")),
    "CrewAI: takeover by the next answer": Case(
        CrewAIScenario((A, NEXT), SERVE, crashes=1), "AN", ends(N="not_parked")
    ),
    "CrewAI: a message that comes again": Case(
        CrewAIScenario((SENT, SENT_AGAIN), falters=True, releases=1, ticks=False), "XY"
    ),
    "pydantic-graph: two racers": Case(
        PydanticGraphScenario((A, TWIN)), "AB", ends(B="consumed in_progress")
    ),
    "pydantic-graph: a bare delivery": Case(PydanticGraphScenario((A, BARE)), "AR"),
    "pydantic-graph: takeover by the next": Case(
        PydanticGraphScenario((A, NEXT), SERVE, crashes=1), "AN"
    ),
}


def every_policy() -> Iterator[tuple[str, Scenario]]:
    """Failure, withdrawal, crash, release and waiting, under every policy and judged by every
    adapter."""
    for conflict, failure, abandoned in product(
        ("refuse", "wait"), ("hold", "retry"), ("refuse", "serve")
    ):
        choices = {"on_conflict": conflict, "on_failure": failure, "on_abandoned": abandoned}
        choice = policy(**choices)
        name = f"{conflict}, {failure}, {abandoned}"
        troubles: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
            "two racers": ((A, TWIN), {"crashes": 1}),
            "two racers, an operator": ((A, TWIN), {"releases": 1}),
            "two racers, a lost answer": ((A, TWIN), {"losses": 1, "ticks": False}),
            "a bare answer": ((A, BARE), {"durable": False}),
            "a bare answer, an operator": ((A, BARE), {"durable": False, "releases": 1}),
            "a recovery, an operator": ((A, GO_ON), {"releases": 1}),
            "the next question of its node": ((A, NEXT), {"crashes": 1, "inside": True}),
            "copies of a message": ((SENT, SENT_AGAIN), {"releases": 1, "ticks": False}),
        }
        for what, (who, more) in troubles.items():
            yield f"{name}: {what}", LangGraphScenario(who, choice, falters=True, **more)
        bound = policy(answers="bound", **choices)
        crash: dict[str, Any] = {"crashes": 1, "releases": 1, "falters": True}
        yield (
            f"{name}: only bound answers",
            LangGraphScenario((A, BARE), bound, bare_too=True, **crash),
        )
        yield f"CrewAI, {name}: an operator", CrewAIScenario((A, NEXT), choice, **crash)
        yield (
            f"pydantic-graph, {name}: an operator",
            PydanticGraphScenario((A, NEXT), choice, **crash),
        )
        crash["releases"] = 0
        yield f"CrewAI, {name}: two racers", CrewAIScenario((A, TWIN), choice, **crash)
