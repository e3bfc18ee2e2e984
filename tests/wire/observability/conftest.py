"""A collector of traces and metrics."""

from __future__ import annotations

from concurrent import futures

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_grpc


class Collector(trace_grpc.TraceServiceServicer, metrics_grpc.MetricsServiceServicer):
    """Receives OTLP; both services name their one method alike."""

    def __init__(self):
        self.spans = []
        self.metrics = {}
        self.resources = []

    def Export(self, request, context):
        if isinstance(request, trace_pb.ExportTraceServiceRequest):
            for resource in request.resource_spans:
                self.resources.append(resource.resource)
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
            return trace_pb.ExportTraceServiceResponse()
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name: metric for metric in scope.metrics}
        return metrics_pb.ExportMetricsServiceResponse()


@pytest.fixture
def collector():
    """A program that receives OTLP; ``endpoint`` is where."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_grpc.add_TraceServiceServicer_to_server(collector, server)
    metrics_grpc.add_MetricsServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    collector.endpoint = f"http://127.0.0.1:{port}"
    yield collector
    server.stop(None).wait()
