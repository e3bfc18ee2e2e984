from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from flue_grpc.observability.calls import FinishedCall
from flue_grpc.observability.instruments import DURATION_BUCKETS, SIZE_BUCKETS, Reading
from flue_grpc.observability.otel import OtelTelemetry

METHOD = "flue.agentindex.v1.AgentIndex/Search"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
def telemetry(spans, reader):
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([reader])
    source = [
        Reading("flue.store.queue", 4.0),
        Reading("flue.budget.in_use", 1.0, ("finite",)),
        Reading("flue.store.commits", 9.0),
    ]
    yield OtelTelemetry(tracers, meters, lambda: source)
    meters.shutdown()
    tracers.shutdown()


def metrics(reader):
    return {
        metric.name: metric
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def call(status="OK", metadata=()):
    return FinishedCall(METHOD, status, 1_700_000_000_000_000_000, 0.25, 100, 9000, metadata)


def test_a_call_is_measured_under_the_standard_names(telemetry, reader):
    telemetry.started(METHOD)
    telemetry.finished(call())
    found = metrics(reader)
    (started,) = found["grpc.server.call.started"].data.data_points
    assert (started.value, dict(started.attributes)) == (1, {"grpc.method": METHOD})
    (duration,) = found["grpc.server.call.duration"].data.data_points
    assert (duration.sum, duration.explicit_bounds) == (0.25, DURATION_BUCKETS)
    assert dict(duration.attributes) == {"grpc.method": METHOD, "grpc.status": "OK"}
    (sent,) = found["grpc.server.call.sent_total_compressed_message_size"].data.data_points
    assert (sent.sum, sent.explicit_bounds) == (9000, SIZE_BUCKETS)
    (received,) = found["grpc.server.call.rcvd_total_compressed_message_size"].data.data_points
    assert received.sum == 100
    assert found["grpc.server.call.duration"].unit == "s"


def test_the_products_own_values_are_read_at_the_export(telemetry, reader):
    found = metrics(reader)
    (queue,) = found["flue.store.queue"].data.data_points
    assert queue.value == 4.0
    (budget,) = found["flue.budget.in_use"].data.data_points
    assert (budget.value, dict(budget.attributes)) == (1.0, {"budget": "finite"})
    assert found["flue.store.commits"].data.is_monotonic


def test_a_span_belongs_to_the_trace_that_the_call_came_in(telemetry, spans):
    metadata = [("traceparent", f"00-{TRACE}-{SPAN}-01"), ("tracestate", "vendor=1")]
    telemetry.finished(call(metadata=metadata))
    (span,) = spans.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == SPAN
    assert span.context.trace_state.get("vendor") == "1"
    assert (span.name, span.kind) == (METHOD, SpanKind.SERVER)
    assert span.end_time - span.start_time == 250_000_000
    assert dict(span.attributes) == {
        "rpc.system": "grpc",
        "rpc.service": "flue.agentindex.v1.AgentIndex",
        "rpc.method": "Search",
        "rpc.response.status_code": "OK",
    }


@pytest.mark.parametrize("value", ["rubbish", f"ff-{TRACE}-{SPAN}-01"])
def test_a_call_without_a_trace_begins_one(telemetry, spans, value):
    telemetry.finished(call(metadata=[("traceparent", value)]))
    (span,) = spans.get_finished_spans()
    assert span.parent is None


def test_a_trace_that_its_caller_does_not_sample_is_not_sampled_here(telemetry, spans):
    telemetry.finished(call(metadata=[("traceparent", f"00-{TRACE}-{SPAN}-00")]))
    assert spans.get_finished_spans() == ()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("OK", StatusCode.UNSET),
        ("NOT_FOUND", StatusCode.UNSET),
        ("CANCELLED", StatusCode.UNSET),
        ("INTERNAL", StatusCode.ERROR),
        ("DATA_LOSS", StatusCode.ERROR),
    ],
)
def test_only_faults_of_the_server_are_errors_of_its_span(telemetry, spans, status, expected):
    telemetry.finished(call(status))
    assert spans.get_finished_spans()[0].status.status_code is expected


def test_metadata_never_leaves_the_process(telemetry, spans):
    telemetry.finished(call(metadata=[("authorization", "Bearer secret"), ("x-secret", "y")]))
    assert "secret" not in spans.get_finished_spans()[0].to_json()
