"""Two workers get the same approval of a text; one is served, the other is told so.

A flow drafts a text and asks a person before it publishes. The click that approves arrives
twice, in two worker processes that share nothing but the SQLite file of the flow's
persistence. No model and no server are needed.

Prints:

    approvals served: 1
    approvals refused: 1, with HTTP status 409
    texts published: 1
"""

# CrewAI reads the annotations of a flow's methods as they are.
# ruff: noqa: I002
# pyright: reportUntypedFunctionDecorator=false

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any


# CrewAI asks about traces, looks for a newer release and reports its use, unless told not to.
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_VERSION_CHECK="true",
    CREWAI_TESTING="true",
    CREWAI_TRACING_ENABLED="false",
    OTEL_SDK_DISABLED="true",
)

from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import SQLiteFlowPersistence

from remit_gates import ResumeRefused, current_claim
from remit_gates.crewai import gate


class Inbox:
    """Asks by leaving: whoever answers resumes the flow."""

    def request_feedback(self, context: Any, flow: Any) -> str:
        # Here a mail would go out, with context.flow_id in the link.
        raise HumanFeedbackPending(context=context)


class Review(Flow):
    """Draft, ask, publish."""

    suppress_flow_events = True

    @start()
    @human_feedback(message="Publish this?", provider=Inbox())
    def draft(self) -> str:
        return "Gates, explained."

    @listen(draft)
    def publish(self, review: Any) -> str:
        # The same for every attempt at this approval, and for nothing else: a receiver that
        # knows idempotency keys publishes once even when a crash is recovered.
        claim = current_claim()
        with Path("published.txt").open("a", encoding="utf-8") as site:
            site.write(f"{review.output} {claim.idempotency_key if claim else ''}\n")
        time.sleep(0.5)  # a slow site: the time in which duplicates arrive
        return "published"


def flows() -> Any:
    """The persistence, as every worker opens it."""
    # The one line. The claims live beside the flows, in the same file.
    return gate(SQLiteFlowPersistence("flows.db"))


def worker(name: str, flow_id: str, begin: Any, results: Any) -> None:
    """Deliver the approval once, as a web handler would."""
    begin.wait()
    try:
        Review.from_pending(flow_id, flows()).resume("yes", remit_actor=name)
    except ResumeRefused as refused:
        # Not a failure: somebody else's copy of this answer is being served, or was.
        print(f"{name}: refused, {refused.reason.value}", flush=True)
        results.put(refused.http_status)
    else:
        print(f"{name}: served", flush=True)
        results.put(200)


def main() -> None:
    # Fresh processes, not forked ones: CrewAI has threads, and a connection must not cross.
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_DATA_HOME=folder, CREWAI_STORAGE_DIR="review")
        home = Path.cwd()
        os.chdir(folder)
        paused = Review(persistence=flows()).kickoff()

        begin, results = processes.Barrier(2), processes.Queue()
        workers = [
            processes.Process(
                target=worker, args=(f"worker {number}", paused.context.flow_id, begin, results)
            )
            for number in (1, 2)
        ]
        for process in workers:
            process.start()
        statuses = sorted(results.get(timeout=120) for _ in workers)
        for process in workers:
            process.join()

        published = Path("published.txt").read_text(encoding="utf-8").splitlines()
        print("approvals served:", statuses.count(200))
        print(f"approvals refused: {len(statuses) - 1}, with HTTP status {statuses[-1]}")
        print("texts published:", len(published))
        os.chdir(home)


if __name__ == "__main__":
    main()
