"""What observers are told of real calls, and what a collector receives of it."""

from __future__ import annotations

import socket
import threading

import grpc
import pytest

from flue.store.v1 import store_pb2
from flue_grpc.errors import SessionNotFoundError
from flue_grpc.observability.instruments import Reading
from flue_grpc.observability.otlp import OtlpTelemetry
from flue_grpc.rpc.interceptors.observation import Observation

GET = "flue.store.v1.Store/GetSession"
LIST = "flue.store.v1.Store/ListMessages"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


class Seen:
    def __init__(self):
        self.begun = []
        self.over = []

    def started(self, method):
        self.begun.append(method)

    def finished(self, call):
        self.over.append(call)


@pytest.fixture
def seen():
    return Seen()


@pytest.fixture
def observed(probe_server, seen):
    with probe_server(observing=[Observation([seen])]) as server:
        yield server


def test_a_unary_call_is_reported_with_its_sizes(observed, seen, wait_until):
    observed.probe.behaviours["ok"] = observed.probe.answer
    response = observed.get("ok")
    wait_until(lambda: seen.over)
    (call,) = seen.over
    assert seen.begun == [GET]
    assert (call.method, call.status) == (GET, "OK")
    request = store_pb2.GetSessionRequest(id="ok")
    assert (call.received_bytes, call.sent_bytes) == (request.ByteSize(), response.ByteSize())
    assert 0 < call.seconds < 20


def test_a_failed_call_is_reported_with_its_status(observed, seen, wait_until):
    def fail(_request, _context):
        raise SessionNotFoundError("no such session")

    observed.probe.behaviours["gone"] = fail
    with pytest.raises(grpc.RpcError):
        observed.get("gone")
    wait_until(lambda: seen.over)
    assert [(call.status, call.sent_bytes) for call in seen.over] == [("NOT_FOUND", 0)]


def test_a_defect_is_reported_as_internal(observed, seen, wait_until):
    observed.probe.behaviours["defect"] = lambda _request, _context: 1 / 0
    with pytest.raises(grpc.RpcError):
        observed.get("defect")
    wait_until(lambda: seen.over)
    assert [call.status for call in seen.over] == ["INTERNAL"]


def test_a_stream_is_one_call_whatever_it_sends(observed, seen, wait_until):
    sent = [store_pb2.ListMessagesResponse(next_page_token="x" * n) for n in range(3)]
    observed.probe.behaviours["three"] = lambda _request, _context: (yield from sent)
    assert len(list(observed.list("three"))) == 3
    wait_until(lambda: seen.over)
    (call,) = seen.over
    assert (call.method, call.status) == (LIST, "OK")
    assert call.sent_bytes == sum(response.ByteSize() for response in sent)


def test_a_cancelled_stream_is_reported_as_cancelled(observed, seen, wait_until):
    observed.probe.behaviours["pour"] = observed.probe.pour
    call = observed.list("pour")
    next(call)
    call.cancel()
    wait_until(lambda: seen.over)
    assert [call.status for call in seen.over] == ["CANCELLED"]


def attributes(items):
    return {item.key: item.value.string_value for item in items}


def test_a_collector_receives_the_spans_and_metrics_of_calls(
    collector, probe_server, wait_until, monkeypatch
):
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    telemetry = OtlpTelemetry(lambda: [Reading("flue.store.wal.size", 4096.0)], "1.2.3")
    with probe_server(observing=[Observation([telemetry.observer])]) as server:
        server.probe.behaviours["ok"] = server.probe.answer
        metadata = [("traceparent", f"00-{TRACE}-{SPAN}-01"), ("authorization", "Bearer secret")]
        server.get("ok", metadata=metadata)
        wait_until(server.is_idle)
    telemetry.close()
    (span,) = collector.spans
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == (GET, TRACE, SPAN)
    assert attributes(span.attributes)["rpc.response.status_code"] == "OK"
    resource = attributes(collector.resources[0].attributes)
    assert (resource["service.name"], resource["service.version"]) == ("flue-grpc", "1.2.3")
    (point,) = collector.metrics["grpc.server.call.duration"].histogram.data_points
    assert attributes(point.attributes) == {"grpc.method": GET, "grpc.status": "OK"}
    (point,) = collector.metrics["flue.store.wal.size"].gauge.data_points
    assert point.as_double == 4096.0
    assert b"secret" not in span.SerializeToString()


def test_a_dead_collector_does_not_hold_up_the_exit(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}"
        )
        monkeypatch.setattr("flue_grpc.observability.otlp.TELEMETRY_FLUSH_SECONDS", 0.1)
        telemetry = OtlpTelemetry(list, "1.2.3")
        telemetry.observer.started(GET)
        closing = threading.Thread(target=telemetry.close)
        closing.start()
        # Far below what the exporters themselves would wait and try again for.
        closing.join(5)
        assert not closing.is_alive()
