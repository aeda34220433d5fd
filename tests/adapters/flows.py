"""Flows for tests, made of methods that write down in a journal what they do."""

# CrewAI reads annotations as they are, so they must not be strings here.
# ruff: noqa: I002
# CrewAI is absent where types are checked, so its decorators have none.
# pyright: reportUntypedFunctionDecorator=false

import contextlib
from typing import Any, Final

from remit_gates._model import RunKey, Snapshot
from remit_gates.stores import open_store
from tests.adapters.hermetic import seal
from tests.journal import Journal


seal()

from crewai.flow.async_feedback import HumanFeedbackPending  # noqa: E402
from crewai.flow.flow import Flow, FlowState, listen, or_, start  # noqa: E402
from crewai.flow.human_feedback import human_feedback  # noqa: E402
from crewai.flow.persistence import persist  # noqa: E402


current: list[Journal] = []
"""The journal of this process."""


def note(flow: Any, step: str) -> None:
    """Write down that `flow` has begun `step`, and stand still there if told to."""
    current[-1].note(flow.flow_id, step)
    current[-1].stand(flow.flow_id, step)


def parked(cls: Any, persistence: Any = None) -> str:
    """A flow of `cls` that waits; its id."""
    return str(cls(persistence=persistence).kickoff().context.flow_id)


def kept(path: str, run: str) -> Snapshot:
    """What the gate knows of `run`, in the database of a flow persistence."""
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        return store.read(RunKey("crewai", "", run))


class Asks:
    """A provider that has the flow pause."""

    def request_feedback(self, context: Any, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


asks: Final = Asks()


class Light:
    """For flows that need no memory: CrewAI's takes seconds to import."""

    _skip_auto_memory = True


class Judged(Light):
    """For flows whose feedback a model would sort: here the words themselves say it."""

    def _collapse_to_outcome(self, feedback: str, outcomes: Any, llm: Any) -> str:
        note(self, "model")
        if feedback == "?":
            raise RuntimeError("the model is down")
        found: str = next(outcome for outcome in outcomes if outcome.startswith(feedback[:4]))
        return found


MODEL: Final = "gpt-4o-mini"
"""What CrewAI makes an object of, and nobody calls."""


class Plain(Light, Flow):
    """The smallest: one pause, and one listener."""

    @start()
    @human_feedback(message="publish?", provider=asks)
    def draft(self) -> str:
        note(self, "draft")
        return "a text"

    @listen(draft)
    def publish(self, result: Any) -> str:
        note(self, f"publish:{result.feedback}")
        note(self, "publish")
        if result.feedback == "fail":
            raise RuntimeError("the listener failed")
        return f"published:{result.feedback}"


class Judging(Judged, Flow):
    """Approve or reject, as a model sorts it."""

    @start()
    @human_feedback(message="publish?", emit=["approved", "rejected"], llm=MODEL, provider=asks)
    def draft(self) -> str:
        note(self, "draft")
        return "a text"

    @listen("approved")
    def publish(self) -> str:
        note(self, "publish")
        return "published"

    @listen("rejected")
    def discard(self) -> str:
        note(self, "discard")
        return "discarded"


class Twice(Light, Flow):
    """One pause after another."""

    @start()
    @human_feedback(message="refund $10?", provider=asks)
    def refund(self) -> str:
        note(self, "refund")
        return "$10"

    @listen(refund)
    @human_feedback(message="wire $10,000?", provider=asks)
    def wire(self, result: Any) -> str:
        note(self, f"wire:{result.feedback}")
        return "$10,000"

    @listen(wire)
    def pay(self, result: Any) -> str:
        note(self, f"pay:{result.feedback}")
        return f"paid:{result.feedback}"


class Looping(Judged, Flow):
    """Asks until it is done."""

    @start()
    def begin(self) -> str:
        note(self, "begin")
        return "a text"

    @listen(or_("begin", "again"))
    @human_feedback(message="good?", emit=["again", "done"], llm=MODEL, provider=asks)
    def ask(self) -> str:
        note(self, "ask")
        return "a text"

    @listen("done")
    def finish(self) -> str:
        note(self, "finish")
        return "finished"


class Count(FlowState):
    """A state of fields."""

    asked: int = 0
    answered: str = ""


def counting(persistence: Any, *, by_method: bool = False) -> type[Any]:
    """A flow with a state of fields that `persistence` keeps after every method, declared
    on the class or on each method."""
    each: Any = persist(persistence) if by_method else lambda method: method

    class Counting(Light, Flow[Count]):
        @start()
        @each
        @human_feedback(message="count?", provider=asks)
        def ask(self) -> str:
            note(self, "ask")
            self.state.asked += 1
            return "a text"

        @listen(ask)
        @each
        def answer(self, result: Any) -> str:
            note(self, "answer")
            self.state.answered = result.feedback
            return f"counted:{result.feedback}"

    made: type[Any] = Counting if by_method else persist(persistence)(Counting)
    return made


class Steps(Light, Flow):
    """Three methods and no pause."""

    @start()
    def first(self) -> str:
        note(self, "first")
        self.state["ran"] = self.state.get("ran", 0) + 1
        return "1"

    @listen(first)
    def second(self, result: Any) -> str:
        note(self, "second")
        if self.state.get("fail"):
            raise RuntimeError("the second method failed")
        return "2"

    @listen(second)
    def third(self, result: Any) -> str:
        note(self, "third")
        return "3"


def stepping(persistence: Any) -> type[Any]:
    """`Steps` that `persistence` keeps after every method. CrewAI does not inherit methods."""
    methods = {name: vars(Steps)[name] for name in ("first", "second", "third")}
    made: type[Any] = persist(persistence)(type("Stepping", (Light, Flow), methods))
    return made
