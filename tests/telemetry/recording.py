"""An application that exports what is recorded into its own memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from remit_gates import otel


Attributes = Mapping[str, Any]


@dataclass
class Recording:
    """The exporters of one application, and what they got."""

    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    def __post_init__(self) -> None:
        self.meters = MeterProvider([self.reader])
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.tracers.get_tracer("test")

    def instrument(self, **options: Any) -> None:
        otel.instrument(meter_provider=self.meters, tracer_provider=self.tracers, **options)

    def close(self) -> None:
        otel.uninstrument()
        self.meters.shutdown()
        self.tracers.shutdown()

    def metrics(self) -> dict[str, Metric]:
        """All that was recorded so far, by name."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def count(self, name: str, **wanted: str) -> float:
        """The sum of a counter's points that have the attributes `wanted`."""
        return sum(
            point.value
            for point in self._points(name, wanted)
            if isinstance(point, NumberDataPoint)
        )

    def times(self, name: str, **wanted: str) -> tuple[int, float]:
        """How often a histogram was recorded, and the sum."""
        found = [
            point for point in self._points(name, wanted) if isinstance(point, HistogramDataPoint)
        ]
        return sum(point.count for point in found), sum(point.sum for point in found)

    def _points(self, name: str, wanted: Mapping[str, str]) -> list[Any]:
        metric = self.metrics().get(f"remit_gates.{name}")
        given = {f"remit_gates.{key}": value for key, value in wanted.items()}
        return [
            point
            for point in (metric.data.data_points if metric else ())
            if given.items() <= dict(point.attributes or {}).items()
        ]

    def spans(self, name: str = "remit_gates.claim") -> list[ReadableSpan]:
        """The spans of that name that have ended, in order."""
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """The gate's own attributes of a span, without the prefix."""
    return {
        key.removeprefix("remit_gates."): value for key, value in (span.attributes or {}).items()
    }
