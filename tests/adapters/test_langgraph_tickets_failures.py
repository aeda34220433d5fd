"""The ticket of what failed, or of whose holder died, is good again when somebody says so."""

from __future__ import annotations

from typing import Any

import pytest

from remit_gates import Policy, current_claim
from remit_gates.errors import (
    Abandoned,
    AlreadyConsumed,
    InProgress,
)
from tests.adapters.graphs import Boom, Journal, asks, chain, does, failing
from tests.adapters.racing import outcome
from tests.adapters.ticketing import (
    SOME,
    deliver,
    waiting,
)
from tests.adapters.workers import Team
from tests.waiting import until


@SOME
def test_what_failed_goes_on_and_its_ticket_is_spent(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after", failing()))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket, "yes", remit_delivery="m")

    assert waiting(graph, config) == ()
    for answer in ("yes", "no"):
        if answer == "no":
            with pytest.raises(AlreadyConsumed) as refused:
                deliver(graph, ticket, answer)
            assert refused.value.failed
    assert deliver(graph, ticket, "yes", remit_delivery="m") == {"log": ["ask=yes", "after="]}
    with pytest.raises(AlreadyConsumed):
        deliver(graph, ticket, "yes", remit_delivery="m")
    assert journal.count("ask!") == 1


@SOME
def test_none_with_the_ticket_goes_on_with_what_failed(team: Team, journal: Journal) -> None:
    builder = chain(ask=asks(journal, "ask", "sure?"), after=does(journal, "after", failing()))
    graph, config = team.worker().compile(builder), team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket, "yes")

    assert graph.invoke(None, ticket.config) == {"log": ["ask=yes", "after="]}
    with pytest.raises(AlreadyConsumed) as refused:
        graph.invoke(None, ticket.config)
    assert refused.value.same_answer is None


@SOME
@pytest.mark.parametrize("how", ["release", "retry"])
def test_what_may_be_answered_again_has_its_ticket(team: Team, journal: Journal, how: str) -> None:
    policy = Policy(on_failure="retry" if how == "retry" else "hold")
    graph = team.worker(policy=policy).compile(
        chain(ask=asks(journal, "ask", "sure?", then=failing()))
    )
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    with pytest.raises(Boom):
        deliver(graph, ticket, "yes")

    if how == "release":
        assert waiting(graph, config) == ()
        assert team.release(graph, config)
    assert waiting(graph, config) == (ticket,)
    assert deliver(graph, ticket, "no") == {"log": ["ask=no"]}
    assert waiting(graph, config) == ()


@SOME
@pytest.mark.parametrize("at_breakpoint", [False, True])
def test_a_ticket_does_not_take_over_from_a_holder_that_died(
    team: Team, journal: Journal, at_breakpoint: bool
) -> None:
    """Not by itself: somebody decides, and then it is good again."""
    claims: list[Any] = []

    def dies_once() -> None:
        claims.append(current_claim())
        if len(claims) == 1:
            # As far as its record can tell, this was the end of its process.
            claims[0]._left = True
            raise Boom

    questions = [] if at_breakpoint else ["sure?"]
    builder = chain(ask=asks(journal, "ask", *questions, then=dies_once))
    graph = team.worker(policy=Policy(lease=0.05)).compile(
        builder, interrupt_before=["ask"] if at_breakpoint else []
    )
    config = team.thread()
    graph.invoke({}, config)
    (ticket,) = waiting(graph, config)
    answer = () if at_breakpoint else ("yes",)
    with pytest.raises(Boom):
        deliver(graph, ticket, *answer)

    until(lambda: not isinstance(outcome(lambda: deliver(graph, ticket, *answer)), InProgress))
    with pytest.raises(Abandoned):
        deliver(graph, ticket, *answer)
    assert waiting(graph, config) == ()
    assert len(claims) == 1
    assert team.release(graph, config)
    assert waiting(graph, config) == (ticket,)
    assert "__interrupt__" not in deliver(graph, ticket, *answer)
    assert claims[1].idempotency_key == claims[0].idempotency_key
