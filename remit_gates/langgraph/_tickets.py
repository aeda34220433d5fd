"""A ticket: what a person gets to see of a pause, and what brings their answer back to it."""

from __future__ import annotations

from typing import Any, Final

from langgraph.types import Command

from remit_gates._ticket import Hashed, Named, Secret, keys, unseal
from remit_gates.errors import UsageError
from remit_gates.langgraph._bound import interrupt_of


_NOTHING: Final = object()
_ELSEWHERE: Final = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")


class Ticket:
    """One pause of a thread, as a person was shown it; `str()` of it is the ticket's text.

    The text is opaque, needs no quoting in a URL, and has fewer than 200 characters. It is
    no secret: without a `secret=` anyone can make one, and with it anyone can read it.

    Attributes:
        pause: The pause, as the record names it.
        interrupt_id: LangGraph's id of the question; None at a static breakpoint.
        thread: The thread id; None where it is too long for a ticket and was not given.
        namespace: The partition of the store; None where it is too long for a ticket.
        value: What the person is asked; None at a static breakpoint. Not there in a ticket
            that was parsed.
    """

    __slots__ = ("_config", "_text", "interrupt_id", "namespace", "pause", "thread", "value")

    value: Any

    def __init__(self, text: str, named: Named, thread: str | None, config: Any = None) -> None:
        self._text = text
        self._config = config
        self.pause = named.pause
        self.interrupt_id = interrupt_of(named.pause)
        self.thread = thread
        self.namespace = None if isinstance(named.namespace, Hashed) else named.namespace

    @classmethod
    def parse(cls, text: str, *, secret: Secret = None, thread: str | None = None) -> Ticket:
        """The ticket that `text` is.

        Args:
            text: What `str(ticket)` gave.
            secret: As given to `gate()`; of several keys, any may have signed it.
            thread: The thread that it must be of. A thread id too long for a ticket is not
                in it, and has to be given here.

        Raises:
            UsageError: It is forged, truncated, of another thread, or no ticket at all.
        """
        named = opened(text, keys(secret))
        if thread is not None and not named.is_of(thread):
            raise UsageError("The ticket is of another thread. Nothing was read or changed.")
        run = thread if isinstance(named.run, Hashed) else named.run
        return cls(text, named, run)

    @property
    def config(self) -> dict[str, Any]:
        """The thread's config with the ticket in it, to pass to `invoke`.

        Raises:
            UsageError: The thread is not known; see `parse`.
        """
        if self.thread is None:
            raise UsageError(
                "The thread id is too long to be in the ticket. Pass it to Ticket.parse() as"
                " thread=. Nothing was read or changed."
            )
        config = dict(self._config or {})
        given = config.get("configurable", {})
        kept = {name: given[name] for name in given if name not in _ELSEWHERE}
        here = {"thread_id": self.thread, **kept, "remit_ticket": self._text}
        return {**config, "configurable": here}

    def command(self, answer: Any = _NOTHING) -> Command[Any] | None:
        """What to pass to `invoke` as its input: `answer` for this very question, or None
        at a static breakpoint, which is gone on from without an answer.

        Raises:
            UsageError: There is an answer and no question, or the other way round.
        """
        if (answer is _NOTHING) != (self.interrupt_id is None):
            raise UsageError(
                "A static breakpoint takes no answer: call command() without one to go on, or"
                " do not go on. Nothing was delivered."
                if self.interrupt_id is None
                else "command() takes the answer to the question. Nothing was delivered."
            )
        return None if self.interrupt_id is None else Command(resume={self.interrupt_id: answer})

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<ticket for pause {self.pause} of thread {self.thread!r}>"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Ticket) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def opened(text: object, secret: tuple[bytes, ...]) -> Named:
    """What a ticket of this adapter says.

    Raises:
        UsageError: It is none.
    """
    named = unseal(text, secret)
    if named.framework != "langgraph" or ":" not in named.pause:
        raise UsageError("The ticket is of another framework. Nothing was read or changed.")
    return named
