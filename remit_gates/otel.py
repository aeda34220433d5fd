"""OpenTelemetry for the gate: a counter for each kind of event, histograms for claim and hold
time, and a span around each claim. It only listens: what is served does not depend on it.

Only the API is used. Where the application has no SDK, nothing is recorded.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from remit_gates._model import RunKey
from remit_gates._observe import Event, Kind, listen
from remit_gates.errors import MissingExtra
from remit_gates.stores import as_store


try:
    from opentelemetry import context, metrics, trace
except ImportError:
    raise MissingExtra(
        "The OpenTelemetry API is not installed. Install it with: pip install 'remit-gates[otel]'"
    ) from None


__all__ = ["gauge_abandoned", "instrument", "uninstrument"]

SCOPE: Final = "remit_gates"

COUNTERS: Final[dict[Kind, tuple[str, str]]] = {
    "granted": ("{delivery}", "Deliveries that were served, on runs that nobody held."),
    "taken_over": ("{delivery}", "Deliveries that were served in the place of a dead holder."),
    "refused": ("{delivery}", "Deliveries that were refused."),
    "claim_failed": ("{delivery}", "Deliveries that got an error instead of a verdict."),
    "served_ungated": ("{delivery}", "Deliveries that were served without a claim."),
    "lost": ("{claim}", "Claims that another one took the place of while they were held."),
    "unsettled": ("{claim}", "Ends of runs that could not be written down at once."),
    "renewal_failed": ("{renewal}", "Renewals of a lease that failed."),
    "released": ("{release}", "Releases by an operator."),
}
"""The counters, by the event that they count: unit and description."""

VERDICTS: Final = frozenset(("granted", "taken_over", "refused", "claim_failed", "served_ungated"))
"""Kinds of event of which each delivery gets one."""

ENDS: Final = frozenset(("settled", "failed", "withdrawn", "lost"))
"""Kinds of event of which each claim gets one."""

CLAIM_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60)

HOLD_SECONDS: Final = (0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 86400)


def instrument(
    *,
    meter_provider: metrics.MeterProvider | None = None,
    tracer_provider: trace.TracerProvider | None = None,
    hash_identifiers: bool = False,
    hash_key: bytes | str = b"",
) -> None:
    """Record metrics and spans of every gate of this process, from now on. Repeated, the
    later call replaces the earlier.

    Args:
        meter_provider: Where metrics go; None for the application's own.
        tracer_provider: Where spans go; None likewise.
        hash_identifiers: Whether namespaces, runs, pauses and delivery ids are recorded as
            hashes only. Equal ones have equal hashes.
        hash_key: What the hashes are keyed with. Without one, likely names can be tried.
    """
    # Taken at the call: an application may set its own provider as late as that.
    listen(
        SCOPE,
        _Recorder(
            metrics.get_meter(SCOPE, _version() or "", meter_provider),
            trace.get_tracer(SCOPE, _version(), tracer_provider),
            _Names(hash_key.encode() if isinstance(hash_key, str) else hash_key, hash_identifiers),
        ),
    )


def uninstrument() -> None:
    """Record nothing any more. Harmless when nothing was recorded."""
    listen(SCOPE)


def gauge_abandoned(
    store: Any,
    *,
    framework: str | None = None,
    namespace: str | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Export `remit_gates.abandoned.age`: for how many seconds the oldest abandoned claim in
    `store` has been without a lease, and 0 where there is none.

    Each time that metrics are collected, all records with a claim are gone through: have
    one process export it, and see docs/telemetry.md for a query that does with less. A
    store that does not answer leaves a gap.

    Args:
        store: A URL, a driver connection or pool, or a store.
        framework: Only this framework's runs.
        namespace: Only this partition of the store.
        meter_provider: Where metrics go; None for the application's own.

    Raises:
        UsageError: The store is none that is known.
        MissingExtra: Its driver is not installed.
    """
    target = as_store(store)
    named = {"framework": framework, "namespace": namespace}
    attributes = {f"{SCOPE}.{name}": value for name, value in named.items() if value is not None}

    def observe(options: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        left = [
            entry.snapshot.lease_left
            for entry in target.scan(framework, namespace, claimed=True)
            if entry.snapshot.lease_left is not None
        ]
        yield metrics.Observation(max(0.0, -min(left, default=0.0)), attributes)

    metrics.get_meter(SCOPE, _version() or "", meter_provider).create_observable_gauge(
        f"{SCOPE}.abandoned.age",
        [observe],
        unit="s",
        description="Time since the lease of the oldest abandoned claim ended.",
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """How identifiers are recorded: as they are, or as hashes."""

    key: bytes
    hashed: bool

    def __call__(self, name: str) -> str:
        if not self.hashed or not name:
            return name
        data = name.encode(errors="surrogatepass")
        return hmac.new(self.key, data, hashlib.sha256).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Open:
    """The span of a claim that is under way, in the context where it is.

    Attributes:
        span: The span.
        run: Its run.
        attached: What to detach when the verdict is there.
        outer: The one that was under way before.
    """

    span: trace.Span
    run: RunKey
    attached: Token[context.Context]
    outer: _Open | None


_open: ContextVar[_Open | None] = ContextVar("remit_gates_span", default=None)


class _Recorder:
    """The hook that `instrument` listens with."""

    def __init__(self, meter: metrics.Meter, tracer: trace.Tracer, names: _Names) -> None:
        self._names = names
        self._tracer = tracer
        self._counters = {
            kind: meter.create_counter(f"{SCOPE}.{kind}", unit=unit, description=text)
            for kind, (unit, text) in COUNTERS.items()
        }
        self._claim = meter.create_histogram(
            f"{SCOPE}.claim.duration",
            unit="s",
            description="Time from the first read of the record to the verdict.",
            explicit_bucket_boundaries_advisory=CLAIM_SECONDS,
        )
        self._hold = meter.create_histogram(
            f"{SCOPE}.hold.duration",
            unit="s",
            description="Time from the claim to the end of its run.",
            explicit_bucket_boundaries_advisory=HOLD_SECONDS,
        )

    def claiming(self, run: RunKey) -> None:
        """A delivery has come: what the store is asked from now on belongs to its span."""
        attributes = {**self._of(run), f"{SCOPE}.run": self._names(run.run)}
        span = self._tracer.start_span(f"{SCOPE}.claim", attributes=attributes)
        attached = context.attach(trace.set_span_in_context(span))
        _open.set(_Open(span, run, attached, _open.get()))

    def __call__(self, event: Event) -> None:
        attributes = self._of(event.run)
        if event.intent is not None:
            attributes[f"{SCOPE}.intent"] = event.intent.value
        if event.reason is not None:
            attributes[f"{SCOPE}.reason"] = event.reason.value
        if event.error is not None:
            attributes["error.type"] = event.error
        if event.kind in VERDICTS:
            # First of all, since whatever fails below must not leave the span attached.
            self._close(event, attributes)
        counter = self._counters.get(event.kind)
        if counter is not None:
            counter.add(1, attributes)
        if event.seconds is None:
            return
        if event.kind in VERDICTS:
            self._claim.record(event.seconds, {**attributes, f"{SCOPE}.verdict": event.kind})
        elif event.kind in ENDS:
            ended = event.kind if event.outcome is None else event.outcome.state
            self._hold.record(event.seconds, {**attributes, f"{SCOPE}.outcome": ended})

    def _close(self, event: Event, attributes: dict[str, str]) -> None:
        opened = _open.get()
        if opened is None or opened.run != event.run:
            return
        _open.set(opened.outer)
        context.detach(opened.attached)
        span = opened.span
        if span.is_recording():
            span.set_attributes(attributes)
            span.set_attribute(f"{SCOPE}.verdict", event.kind)
            if event.pauses:
                span.set_attribute(f"{SCOPE}.pauses", [*map(self._names, event.pauses)])
            if event.delivery is not None:
                span.set_attribute(f"{SCOPE}.delivery", self._names(event.delivery))
            if event.claim is not None:
                span.set_attribute(f"{SCOPE}.token", event.claim.token)
                span.set_attribute(f"{SCOPE}.attempt", event.claim.attempt)
            if event.kind == "claim_failed":
                span.set_status(trace.StatusCode.ERROR, event.error)
        span.end()

    def _of(self, run: RunKey) -> dict[str, str]:
        return {
            f"{SCOPE}.framework": run.framework,
            f"{SCOPE}.namespace": self._names(run.namespace),
        }


def _version() -> str | None:
    try:
        return metadata.version("remit-gates")
    except metadata.PackageNotFoundError:
        # Run from a checkout.
        return None
