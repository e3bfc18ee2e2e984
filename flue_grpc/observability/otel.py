"""OpenTelemetry traces and metrics (extra ``otel``), sent by OTLP.

Endpoint, headers, sampling and intervals come from the ``OTEL_*`` environment
that every OpenTelemetry program reads; the service name is ``flue-grpc`` unless
``OTEL_SERVICE_NAME`` says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from flue_grpc.observability.instruments import (
    CALL_DURATION,
    CALL_RECEIVED,
    CALL_SENT,
    CALL_STARTED,
    METHOD_LABEL,
    PRODUCT_INSTRUMENTS,
    STATUS_LABEL,
)
from flue_grpc.observability.trace_context import trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram

    from flue_grpc.observability.calls import FinishedCall
    from flue_grpc.observability.instruments import Instrument, ReadingSource

SCOPE: Final = "flue_grpc"
_NANOSECONDS: Final = 1_000_000_000
# What a server reports as its own failure (OpenTelemetry's conventions for gRPC).
_SERVER_FAULTS: Final = frozenset(
    (
        "UNKNOWN",
        "DEADLINE_EXCEEDED",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
    )
)


class OtelTelemetry:
    """Makes a span and measurements of every call; a CallObserver."""

    def __init__(
        self, tracers: TracerProvider, meters: MeterProvider, source: ReadingSource
    ) -> None:
        """Use these providers; ``source`` is asked at every export."""
        self._tracer = tracers.get_tracer(SCOPE)
        meter = meters.get_meter(SCOPE)
        self._started = meter.create_counter(
            CALL_STARTED.name, CALL_STARTED.unit, CALL_STARTED.description
        )
        self._duration = _histogram(meter, CALL_DURATION)
        self._sent = _histogram(meter, CALL_SENT)
        self._received = _histogram(meter, CALL_RECEIVED)
        for instrument in PRODUCT_INSTRUMENTS:
            _observe(meter, instrument, source)

    def started(self, method: str) -> None:
        """Count a call that has begun."""
        self._started.add(1, {METHOD_LABEL: method})

    def finished(self, call: FinishedCall) -> None:
        """Record a call that is over, as a span of the trace that it came in."""
        labels = {METHOD_LABEL: call.method, STATUS_LABEL: call.status}
        self._duration.record(call.seconds, labels)
        self._sent.record(call.sent_bytes, labels)
        self._received.record(call.received_bytes, labels)
        self._span(call)

    def _span(self, call: FinishedCall) -> None:
        service, _, method = call.method.partition("/")
        span = self._tracer.start_span(
            call.method,
            _parent(call.metadata),
            SpanKind.SERVER,
            {
                "rpc.system": "grpc",
                "rpc.service": service,
                "rpc.method": method,
                "rpc.response.status_code": call.status,
            },
            start_time=call.started_ns,
        )
        if call.status in _SERVER_FAULTS:
            span.set_status(Status(StatusCode.ERROR, call.status))
        span.end(call.started_ns + round(call.seconds * _NANOSECONDS))


def _parent(metadata: Sequence[tuple[str, str | bytes]]) -> Context | None:
    if trace_of(metadata) is None:
        return None
    carrier = {key: value for key, value in metadata if isinstance(value, str)}
    return TraceContextTextMapPropagator().extract(carrier)


def _histogram(meter: Meter, instrument: Instrument) -> Histogram:
    return meter.create_histogram(
        instrument.name,
        instrument.unit,
        instrument.description,
        explicit_bucket_boundaries_advisory=instrument.buckets,
    )


def _observe(meter: Meter, instrument: Instrument, source: ReadingSource) -> None:
    if instrument.kind == "counter":
        create: Callable[..., object] = meter.create_observable_counter
    else:
        create = meter.create_observable_gauge

    def observe(_options: CallbackOptions) -> Iterator[Observation]:
        for reading in source():
            if reading.name == instrument.name:
                labels = dict(zip(instrument.labels, reading.labels, strict=True))
                yield Observation(float(reading.value), labels)

    create(instrument.name, [observe], instrument.unit, instrument.description)
