"""The OpenTelemetry providers of the program itself: batches sent by OTLP over gRPC."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from flue_grpc.limits import TELEMETRY_FLUSH_SECONDS
from flue_grpc.observability.otel import OtelTelemetry

if TYPE_CHECKING:
    from flue_grpc.observability.instruments import ReadingSource

_SERVICE: Final = "flue-grpc"


class OtlpTelemetry:
    """OtelTelemetry with its own providers, which ``close`` flushes and stops."""

    def __init__(self, source: ReadingSource, version: str) -> None:
        """Start exporting as the ``OTEL_*`` environment says."""
        name = os.environ.get("OTEL_SERVICE_NAME", _SERVICE)
        resource = Resource.create({"service.name": name, "service.version": version})
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        self.observer = OtelTelemetry(self._tracers, self._meters, source)

    def close(self) -> None:
        """Send what is held within TELEMETRY_FLUSH_SECONDS, and stop."""
        stops = [
            threading.Thread(target=provider.shutdown, name="telemetry-flush", daemon=True)
            for provider in (self._tracers, self._meters)
        ]
        for stop in stops:
            stop.start()
        end = time.monotonic() + TELEMETRY_FLUSH_SECONDS
        for stop in stops:
            stop.join(max(0.0, end - time.monotonic()))
