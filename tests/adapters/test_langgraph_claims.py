"""A node can ask for its claim, whose key is the same for every attempt at one pause."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.types import Command, interrupt

from remit_gates import Policy, current_claim
from remit_gates._claim import ActiveClaim
from remit_gates.langgraph import claim_in_node
from tests.adapters.graphs import Boom, Journal, asks, chain, failing
from tests.adapters.workers import Team, on


SOME = pytest.mark.kinds(
    "memory", "memory-async", "sqlite", "sqlite-async", "postgres-async", "redis", "foreign"
)


def telling(seen: list[ActiveClaim | None], then: Any = None) -> Any:
    """A node that notes its claim."""

    def node(state: Any) -> Any:
        seen.append(current_claim())
        if then is not None:
            then()
        return {"log": ["told"]}

    return node


@SOME
def test_a_node_knows_its_claim(team: Team, journal: Journal) -> None:
    seen: list[ActiveClaim | None] = []
    builder = chain(first=telling(seen), ask=asks(journal, "ask", "sure?"), second=telling(seen))
    graph, config = team.worker().compile(builder), team.thread()
    asked = graph.invoke({}, config)["__interrupt__"][0]
    graph.invoke(Command(resume="yes"), on(config, remit_delivery="m", remit_actor="ann"))

    before, claim = seen
    assert before is None
    assert claim is not None
    assert claim.run.run == config["configurable"]["thread_id"]
    assert (claim.delivery, claim.actor, claim.attempt) == ("m", "ann", 1)
    assert claim.token > 0
    (pause,) = claim.pauses
    assert asked.id in pause
    assert current_claim() is None


@pytest.mark.kinds("memory-async", "sqlite-async", "postgres-async-pool", "redis-async")
def test_an_async_node_and_its_tasks_know_their_claim(team: Team, journal: Journal) -> None:
    seen: list[ActiveClaim | None] = []

    async def tell() -> None:
        await asyncio.sleep(0)
        seen.append(current_claim())
        await asyncio.to_thread(lambda: seen.append(current_claim()))

    async def node(state: Any) -> Any:
        seen.append(current_claim())
        await asyncio.gather(tell(), tell())
        return {"log": ["told"]}

    graph = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"), node=node))
    config = team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), config)

    assert len(seen) == 5
    assert seen[0] is not None
    assert all(claim is seen[0] for claim in seen)


@SOME
def test_a_node_within_a_subgraph_knows_the_roots_claim(team: Team, journal: Journal) -> None:
    seen: list[ActiveClaim | None] = []
    inner = chain(ask=asks(journal, "ask", "sure?"), tell=telling(seen)).compile()
    graph, config = team.worker().compile(chain(outer=inner, after=telling(seen))), team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), config)

    assert seen[0] is not None
    assert seen[0] is seen[1]


@SOME
def test_the_key_stays_through_every_attempt(team: Team, journal: Journal) -> None:
    seen: list[ActiveClaim | None] = []
    builder = chain(ask=asks(journal, "ask", "sure?"), tell=telling(seen, failing(2)))
    first, second = team.worker().compile(builder), team.worker().compile(builder)
    config = team.thread(remit_delivery="m")
    first.invoke({}, config)
    with pytest.raises(Boom):
        first.invoke(Command(resume="yes"), config)
    with pytest.raises(Boom):
        second.invoke(None, on(config))
    first.invoke(Command(resume="yes"), config)

    claims = [claim for claim in seen if claim is not None]
    assert [claim.attempt for claim in claims] == [1, 2, 3]
    assert len({claim.idempotency_key for claim in claims}) == 1
    tokens = [claim.token for claim in claims]
    assert tokens == sorted(set(tokens))


@SOME
def test_the_key_stays_when_another_answer_is_served(team: Team, journal: Journal) -> None:
    """The work that may have been done already is the same work."""
    seen: list[ActiveClaim | None] = []

    def node(state: Any) -> Any:
        answer = interrupt("sure?")
        seen.append(current_claim())
        fail()
        return {"log": [answer]}

    fail = failing()
    graph = team.worker(policy=Policy(on_failure="retry")).compile(chain(node=node))
    config = team.thread()
    graph.invoke({}, config)
    with pytest.raises(Boom):
        graph.invoke(Command(resume="a"), config)

    assert graph.invoke(Command(resume="b"), config) == {"log": ["b"]}
    keys = {claim.idempotency_key for claim in seen if claim is not None}
    assert len(keys) == 1


@SOME
def test_every_question_has_its_own_key(team: Team, journal: Journal) -> None:
    keys: list[str] = []

    def node(state: Any) -> Any:
        for question in ("1?", "2?", "3?"):
            interrupt(question)
            claim = current_claim()
            assert claim is not None
            keys.append(claim.idempotency_key)
        return {"log": ["done"]}

    def key() -> None:
        claim = current_claim()
        assert claim is not None
        keys.append(claim.idempotency_key)

    builder = chain(node=node, ask=asks(journal, "ask", "4?", then=key))
    inner = chain(outer=builder.compile())
    for graph in (team.worker().compile(builder), team.worker().compile(inner)):
        keys.clear()
        config = team.thread()
        graph.invoke({}, config)
        ends = []
        for _ in range(4):
            graph.invoke(Command(resume="yes"), config)
            ends.append(keys[-1])
        assert len(set(ends)) == 4


@pytest.mark.kinds("memory", "sqlite", "memory-async")
def test_a_claim_is_found_by_a_nodes_config(team: Team, journal: Journal) -> None:
    from langchain_core.runnables import RunnableConfig

    seen: list[Any] = []

    def node(state: Any, config: RunnableConfig) -> Any:
        seen.extend((claim_in_node(config), current_claim()))
        return {"log": ["told"]}

    graph = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"), node=node))
    config = team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), config)

    assert seen[0] is not None
    assert seen[0] is seen[1]


@pytest.mark.kinds("memory", "memory-async")
def test_a_claim_is_of_no_use_after_its_run(team: Team, journal: Journal) -> None:
    from remit_gates.errors import ClaimLost

    seen: list[ActiveClaim | None] = []
    graph = team.worker().compile(chain(ask=asks(journal, "ask", "sure?"), tell=telling(seen)))
    config = team.thread()
    graph.invoke({}, config)
    graph.invoke(Command(resume="yes"), config)

    (claim,) = seen
    assert claim is not None
    with pytest.raises(ClaimLost):
        claim.check()
