"""What the approval desk is about: cases, the graph that works on them, and the ledger.

Nothing in the graph knows of HTTP, or of the gate but for the key that it hands to whoever
performs an effect. The ledger has no unique constraint: were an effect to happen twice, it
would show.
"""

from __future__ import annotations

import operator
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from remit_gates import Policy, current_claim
from remit_gates.langgraph import Ticket, gate, tickets


APPROVE: Final = "approve"
REJECT: Final = "reject"

WAIT: Final = Policy(on_conflict="wait", wait_timeout=10)
"""For people: whoever comes second learns how it ended, not that somebody was first."""

TABLES: Final = """
CREATE TABLE IF NOT EXISTS cases (
    id text PRIMARY KEY,
    customer text NOT NULL,
    opened timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    case_id text NOT NULL,
    effect text NOT NULL,
    approved_by text NOT NULL,
    key text NOT NULL,
    worker integer NOT NULL,
    done timestamptz NOT NULL DEFAULT now()
);
"""


class Decision(TypedDict):
    """What somebody decided about one step of a case."""

    step: str
    answer: str
    by: str


class Case(TypedDict):
    """The state of a case's run."""

    customer: str
    steps: list[str]
    decisions: Annotated[list[Decision], operator.add]


@dataclass(frozen=True, slots=True)
class Shown:
    """A case as the page shows it.

    Attributes:
        id: Its thread id.
        customer: Whom it is about.
        decisions: What was decided so far.
        waits: A ticket for each question that waits.
    """

    id: str
    customer: str
    decisions: Sequence[Decision]
    waits: Sequence[Ticket]


Pool = ConnectionPool[Connection[dict[str, Any]]]


class Desk:
    """The cases of one database, as one worker sees them.

    Args:
        pool: Connections to it.
        secret: What tickets are signed with; the same in all workers.
        worker: Stands in the ledger with what this worker did.
        slow: Seconds that an effect takes: the time in which duplicates arrive.
    """

    def __init__(self, pool: Pool, secret: str, *, worker: int = 0, slow: float = 0.0) -> None:
        self._pool = pool
        self._worker = worker
        self._slow = slow
        self.secret = secret
        saver = PostgresSaver(pool)
        # One graph, compiled twice: both gates keep their claims in the same table.
        builder = self._builder()
        self._saver = gate(saver, secret=secret)
        self.for_programs: Any = builder.compile(checkpointer=self._saver)
        self.for_people: Any = builder.compile(checkpointer=gate(saver, policy=WAIT, secret=secret))

    def _builder(self) -> Any:
        def decide(case: Case) -> dict[str, Any]:
            step = case["steps"][len(case["decisions"])]
            answer = interrupt({"customer": case["customer"], "step": step})
            claim = current_claim()
            by = (claim and claim.actor) or "somebody"
            return {"decisions": [{"step": step, "answer": answer, "by": by}]}

        def act(case: Case) -> dict[str, Any]:
            time.sleep(self._slow)
            claim = current_claim()
            last = case["decisions"][-1]
            with self._pool.connection() as connection:
                # Where a bank would be called, it would be handed the same key.
                connection.execute(
                    "INSERT INTO ledger (case_id, effect, approved_by, key, worker)"
                    " VALUES (%s, %s, %s, %s, %s)",
                    (
                        claim.run.run if claim else "",
                        last["step"],
                        last["by"],
                        claim.idempotency_key if claim else "",
                        self._worker,
                    ),
                )
            return {}

        def onward(case: Case) -> str:
            return "decide" if len(case["decisions"]) < len(case["steps"]) else END

        def decided(case: Case) -> str:
            return "act" if case["decisions"][-1]["answer"] == APPROVE else onward(case)

        builder: Any = StateGraph(Case)
        builder.add_node("decide", decide)
        builder.add_node("act", act)
        builder.add_edge(START, "decide")
        builder.add_conditional_edges("decide", decided, ["act", "decide", END])
        builder.add_conditional_edges("act", onward, ["decide", END])
        return builder

    def set_up(self) -> None:
        """Make the tables: LangGraph's, the gate's, and the desk's own."""
        self._saver.setup()
        with self._pool.connection() as connection:
            connection.execute(TABLES)

    def open(self, customer: str, steps: Sequence[str]) -> str:
        """Open a case, whose run goes on to its first question; its id."""
        case = str(uuid.uuid4())
        with self._pool.connection() as connection:
            connection.execute("INSERT INTO cases (id, customer) VALUES (%s, %s)", (case, customer))
        start: Case = {"customer": customer, "steps": list(steps), "decisions": []}
        self.for_programs.invoke(start, _thread(case))
        return case

    def cases(self, newest: int = 12) -> Iterator[Shown]:
        """The newest cases, newest first. Looking claims nothing."""
        with self._pool.connection() as connection:
            rows = connection.execute(
                "SELECT id, customer FROM cases ORDER BY opened DESC, id LIMIT %s", (newest,)
            ).fetchall()
        for row in rows:
            config = _thread(row["id"])
            state = self.for_programs.get_state(config)
            waits = tickets(self.for_programs, config)
            yield Shown(row["id"], row["customer"], state.values.get("decisions", ()), waits)

    def decisions(self, case: str) -> Sequence[Decision]:
        """What was decided in a case so far."""
        found: Sequence[Decision] = self.for_programs.get_state(_thread(case)).values["decisions"]
        return found

    def ledger(self, newest: int = 12) -> list[dict[str, Any]]:
        """What was done, newest first."""
        with self._pool.connection() as connection:
            return connection.execute(
                "SELECT * FROM ledger ORDER BY id DESC LIMIT %s", (newest,)
            ).fetchall()

    def deliver(
        self, graph: Any, ticket: Ticket, answer: str, by: str, delivery: str | None = None
    ) -> Mapping[str, Any]:
        """Deliver an answer; the state that it led to.

        Raises:
            ResumeRefused: It was not served.
        """
        options = {"remit_actor": by, "remit_delivery": delivery}
        config = {"configurable": {**ticket.config["configurable"], **options}}
        state: Mapping[str, Any] = graph.invoke(ticket.command(answer), config)
        return state


def _thread(case: str) -> Any:
    return {"configurable": {"thread_id": case}}


@contextmanager
def opened(url: str, secret: str, *, worker: int = 0, slow: float = 0.0) -> Iterator[Desk]:
    """A desk on the database at `url`."""
    settings = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
    pool: Pool = ConnectionPool(url, kwargs=settings, min_size=1, max_size=16, open=False)
    with pool:
        yield Desk(pool, secret, worker=worker, slow=slow)
