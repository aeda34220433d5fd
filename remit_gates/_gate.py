"""The protocol for a framework of one's own: a block that one delivery enters.

    with gate.passage(run="order-17", pause="approve", answer=True) as claim:
        charge(order, idempotency_key=claim.idempotency_key)

Every other delivery gets a `ResumeRefused` before the block's first line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import replace
from typing import Any, Final

from remit_gates._claim import ActiveClaim
from remit_gates._decide import same_as_served
from remit_gates._digest import digest
from remit_gates._drive import adrive, drive
from remit_gates._history import Attempt
from remit_gates._keeper import Keeper
from remit_gates._liveness import mint
from remit_gates._model import Answer, Delivery, Holder, Intent, Outcome, Record, RunKey
from remit_gates._passage import Denied, Judge
from remit_gates._policy import Policy
from remit_gates._port import StorePort
from remit_gates._refusal import Verbs, refusal
from remit_gates._transcript import transcript
from remit_gates.errors import UsageError
from remit_gates.stores import AsyncStore, Store, as_async_store, as_store


_current: ContextVar[ActiveClaim | None] = ContextVar("remit_gates_claim", default=None)

_finders: list[Callable[[], ActiveClaim | None]] = [_current.get]

VERBS: Final = Verbs()


def find_claims_with(finder: Callable[[], ActiveClaim | None]) -> None:
    """Have `current_claim` also ask `finder`, which knows how a framework carries its
    claim to user code."""
    if finder not in _finders:
        _finders.append(finder)


def only_gated_once(what: object, **given: object) -> None:
    """Return only if nothing is `given` for `what`, which is gated already, with options of
    its own: a policy that is silently not the one in force would be the worst surprise.

    Raises:
        UsageError: Something is given.
    """
    ignored = [f"{name}=" for name, value in given.items() if value not in (None, "", Policy())]
    if ignored:
        raise UsageError(
            f"This {type(what).__name__} is gated already, with options of its own, and"
            f" {', '.join(ignored)} would be ignored. Give them to the first gate(), or gate the"
            " original. Nothing was wrapped."
        )


def current_claim() -> ActiveClaim | None:
    """The claim under which the calling code runs; None outside any gated run.

    Where claims are nested, it is the one that was entered last.
    """
    found = [claim for finder in _finders if (claim := finder()) is not None]
    return max(found, key=lambda claim: claim.passage.entered, default=None)


class _Base:
    """What `Gate` and `AsyncGate` share: everything but the waiting."""

    def __init__(
        self, store: Store | AsyncStore, policy: Policy, namespace: str, framework: str
    ) -> None:
        self._keeper = Keeper(store, policy)
        self._namespace = namespace
        self._framework = framework

    def _key(self, run: str) -> RunKey:
        return RunKey(self._framework, self._namespace, run)

    def _judge(
        self,
        run: RunKey,
        holder: Holder,
        pause: str | None,
        answer: Any,
        intent: Intent | None,
        delivery: str | None,
        actor: str | None,
    ) -> Judge:
        intent = intent or (Intent.CONTINUE if pause is None else Intent.ANSWER)
        if (pause is not None) != (intent is Intent.ANSWER):
            raise UsageError(
                f"{run}: a delivery with the intent {intent.value!r}"
                f" {'needs' if pause is None else 'takes no'} pause=. Nothing ran."
            )
        answers: tuple[Answer, ...] = ()
        if pause is not None:
            text = transcript(answer) if self._keeper.policy.record_answers else None
            answers = (Answer(pause, digest(answer, run.run, pause), text=text),)

        def judge(loaded: Any, record: Record) -> Delivery:
            return Delivery(
                intent=intent,
                holder=holder,
                answers=answers,
                bound=intent is not Intent.CONTINUE,
                id=delivery,
                actor=actor,
            )

        return judge


def _admitted(result: ActiveClaim | Denied, judge: Judge) -> ActiveClaim:
    if isinstance(result, Denied):
        if result.delivery is None and result.record is not None:
            # It was refused before it was judged, for which here nothing is loaded.
            same = same_as_served(result.record, judge(None, result.record))
            result = replace(result, verdict=replace(result.verdict, same=same))
        raise refusal(result, VERBS)
    return result


def _forget(token: Token[ActiveClaim | None]) -> None:
    # Some frameworks leave a block in another context than they entered it in; what was
    # set is gone with that one.
    with suppress(ValueError):
        _current.reset(token)


def _ended(claim: ActiveClaim, error: BaseException | None = None) -> Outcome:
    if error is not None:
        return Outcome("failed", detail=type(error).__name__)
    return claim.outcome or Outcome("finished")


class Gate(_Base):
    """The gate in front of the runs of a framework of one's own.

    Args:
        store: A URL, a driver connection or pool, or a store.
        policy: The choices that the protocol leaves open.
        namespace: One's own partition of a shared store.
        framework: A name for the kind of runs.

    Raises:
        UsageError: The store is none that is known.
        MissingExtra: Its driver is not installed.
    """

    def __init__(
        self,
        store: Any,
        *,
        policy: Policy = Policy(),
        namespace: str = "",
        framework: str = "gate",
    ) -> None:
        self.store = as_store(store)
        super().__init__(self.store, policy, namespace, framework)

    @contextmanager
    def passage(
        self,
        run: str,
        pause: str | None = None,
        answer: Any = None,
        *,
        intent: Intent | None = None,
        delivery: str | None = None,
        actor: str | None = None,
    ) -> Iterator[ActiveClaim]:
        """Run the block under the claim on `run`, or raise before its first line.

        When the block ends, its answer is settled; when it raises, it is `failed`. A run
        that waits for more answers says so with `claim.parked(...)`.

        Args:
            run: The run.
            pause: The pause that is answered; None to continue or start the run.
            answer: The answer, of which only a digest is kept, unless the policy is to
                record answers.
            intent: `CONTINUE` (the default without a pause), `START` or `FORK`.
            delivery: The delivery id: a redelivery is recognised by it.
            actor: Who answers.

        Raises:
            ResumeRefused: Another delivery is or was served.
            StoreError, OutcomeUnknown: The claim could not be made; nothing ran.
            UsageError: Intent and pause do not go together.
        """
        key = self._key(run)
        holder = mint()
        judge = self._judge(key, holder, pause, answer, intent, delivery, actor)
        flow = self._keeper.admit(key, holder, judge)
        claim = _admitted(drive(flow, StorePort(self.store)), judge)
        token = _current.set(claim)
        try:
            yield claim
        except BaseException as error:
            drive(self._keeper.dismiss(claim, _ended(claim, error)), StorePort(self.store))
            raise
        else:
            drive(self._keeper.dismiss(claim, _ended(claim)), StorePort(self.store))
        finally:
            _forget(token)

    def release(
        self,
        run: str,
        *,
        pause: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> bool:
        """Re-open what a failed or abandoned delivery left closed. See `release`."""
        return release(
            self.store,
            run,
            framework=self._framework,
            namespace=self._namespace,
            pause=pause,
            actor=actor,
            reason=reason,
        )

    def history(self, run: str) -> tuple[Attempt, ...]:
        """Who answered what on `run`, and when. See `history`."""
        return drive(self._keeper.history(self._key(run)), StorePort(self.store))


class AsyncGate(_Base):
    """As `Gate`, for async code.

    Args and raises: as for `Gate`; an async driver's connection or pool will do as well.
    """

    def __init__(
        self,
        store: Any,
        *,
        policy: Policy = Policy(),
        namespace: str = "",
        framework: str = "gate",
    ) -> None:
        self.store = as_async_store(store)
        super().__init__(self.store, policy, namespace, framework)

    @asynccontextmanager
    async def passage(
        self,
        run: str,
        pause: str | None = None,
        answer: Any = None,
        *,
        intent: Intent | None = None,
        delivery: str | None = None,
        actor: str | None = None,
    ) -> AsyncIterator[ActiveClaim]:
        """As `Gate.passage`. A cancelled block is `failed` like one that raised."""
        key = self._key(run)
        holder = mint()
        judge = self._judge(key, holder, pause, answer, intent, delivery, actor)
        port = StorePort(self.store, asyncio.sleep)
        claim = _admitted(await adrive(self._keeper.admit(key, holder, judge), port), judge)
        token = _current.set(claim)
        try:
            yield claim
        except BaseException as error:
            await adrive(self._keeper.dismiss(claim, _ended(claim, error)), port)
            raise
        else:
            await adrive(self._keeper.dismiss(claim, _ended(claim)), port)
        finally:
            _forget(token)

    async def release(
        self,
        run: str,
        *,
        pause: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> bool:
        """As `Gate.release`."""
        flow = self._keeper.release(self._key(run), pause, actor, reason)
        return _released(await adrive(flow, StorePort(self.store, asyncio.sleep)))

    async def history(self, run: str) -> tuple[Attempt, ...]:
        """As `Gate.history`."""
        flow = self._keeper.history(self._key(run))
        return await adrive(flow, StorePort(self.store, asyncio.sleep))


def release(
    store: Any,
    run: str,
    *,
    framework: str = "gate",
    namespace: str = "",
    pause: str | None = None,
    actor: str | None = None,
    reason: str | None = None,
) -> bool:
    """Re-open what a failed or abandoned delivery left closed, for another answer.

    Args:
        store: A URL, a driver connection or pool, or a store.
        run: The run.
        framework: The adapter whose run it is.
        namespace: The partition of the store.
        pause: Only this pause; None for every unfinished one.
        actor: Who releases; kept in the record.
        reason: Why; kept in the record.

    Returns:
        Whether there was anything to re-open.

    Raises:
        InProgress: A holder is alive; nothing was changed.
        StoreError, OutcomeUnknown: The store could not do it, or did not say.
    """
    target = as_store(store)
    key = RunKey(framework, namespace, run)
    flow = Keeper(target, Policy()).release(key, pause, actor, reason)
    return _released(drive(flow, StorePort(target)))


def history(
    store: Any, run: str, *, framework: str = "gate", namespace: str = ""
) -> tuple[Attempt, ...]:
    """Who answered what on `run`, and when: each attempt that the record remembers, in the
    order in which they began. Nothing is claimed or changed.

    Args:
        store: A URL, a driver connection or pool, or a store.
        run: The run.
        framework: The adapter whose run it is.
        namespace: The partition of the store.

    Raises:
        StoreError: The store could not be read.
    """
    target = as_store(store)
    flow = Keeper(target, Policy()).history(RunKey(framework, namespace, run))
    return drive(flow, StorePort(target))


def _released(result: bool | Denied) -> bool:
    if isinstance(result, Denied):
        raise refusal(result, VERBS)
    return result
