"""Scenarios in which deliveries are judged by the LangGraph adapter: a few in each run of the
suite, and all of them, under every policy, in `make prove`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from tests.proofs.adapters import LangGraphScenario
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
}


def every_policy() -> Iterator[tuple[str, LangGraphScenario]]:
    """Failure, withdrawal, crash, release and waiting, under every policy."""
    for conflict, failure, abandoned in product(
        ("refuse", "wait"), ("hold", "retry"), ("refuse", "serve")
    ):
        choice = policy(on_conflict=conflict, on_failure=failure, on_abandoned=abandoned)
        name = f"{conflict}, {failure}, {abandoned}"
        troubles: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
            "two racers": ((A, TWIN), {"crashes": 1}),
            "a bare answer": ((A, BARE), {"durable": False}),
            "a recovery, an operator": ((A, GO_ON), {"releases": 1}),
            "the next question of its node": ((A, NEXT), {"crashes": 1, "inside": True}),
            "copies of a message": ((SENT, SENT_AGAIN), {"releases": 1, "ticks": False}),
        }
        for what, (who, more) in troubles.items():
            yield f"{name}: {what}", LangGraphScenario(who, choice, falters=True, **more)
