from __future__ import annotations

import contextlib
import http.client
import select
import socket
import threading

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from flue_grpc.errors import ConfigError
from flue_grpc.limits import METRICS_CONNECTIONS
from flue_grpc.observability.calls import FinishedCall
from flue_grpc.observability.instruments import PRODUCT_INSTRUMENTS, Reading
from flue_grpc.observability.prometheus import MetricsEndpoint, PrometheusMetrics, prometheus_name
from tests.waiting import wait_until

REQUEST_SECONDS = "flue_grpc.observability.bounded_http.METRICS_REQUEST_SECONDS"
METHOD = "flue.store.v1.Store/GetSession"
READINGS = [
    Reading("flue.store.wal.size", 4096.0),
    Reading("flue.budget.in_use", 3.0, ("unary",)),
    Reading("flue.budget.in_use", 2.0, ("live",)),
    Reading("flue.store.commits", 7.0),
]


@pytest.fixture
def metrics():
    return PrometheusMetrics(lambda: iter(READINGS))


@pytest.fixture
def endpoint(metrics):
    endpoint = MetricsEndpoint("127.0.0.1", 0, metrics.registry)
    yield endpoint
    endpoint.close()


def get(endpoint, path="/metrics", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read().decode()
    finally:
        connection.close()


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_calls_are_counted_under_the_standard_names(metrics, endpoint):
    metrics.started(METHOD)
    metrics.started(METHOD)
    metrics.finished(FinishedCall(METHOD, "NOT_FOUND", 0, 0.0007, 2048, 5000))
    found = samples(get(endpoint)[2])
    method, status = ("grpc_method", METHOD), ("grpc_status", "NOT_FOUND")
    duration = "grpc_server_call_duration_seconds"
    sent = "grpc_server_call_sent_total_compressed_message_size_bytes"
    received = "grpc_server_call_rcvd_total_compressed_message_size_bytes"
    assert found["grpc_server_call_started_total", method] == 2
    assert found[f"{duration}_count", method, status] == 1
    assert found[f"{duration}_sum", method, status] == 0.0007
    assert found[f"{duration}_bucket", method, status, ("le", "0.0006")] == 0
    assert found[f"{duration}_bucket", method, status, ("le", "0.0008")] == 1
    assert found[f"{sent}_sum", method, status] == 5000
    assert found[f"{received}_bucket", method, status, ("le", "2048.0")] == 1


def test_the_products_own_values_are_read_at_the_scrape(endpoint):
    found = samples(get(endpoint)[2])
    assert found["flue_store_wal_size_bytes",] == 4096
    assert found["flue_budget_in_use", ("budget", "unary")] == 3
    assert found["flue_budget_in_use", ("budget", "live")] == 2
    assert found["flue_store_commits_total",] == 7
    assert found["process_open_fds",] > 0


def test_every_instrument_of_the_product_is_described(endpoint):
    text = get(endpoint)[2]
    for instrument in PRODUCT_INSTRUMENTS:
        kind = "counter" if instrument.kind == "counter" else "gauge"
        suffix = "_total" if kind == "counter" else ""
        name = f"{prometheus_name(instrument)}{suffix}"
        assert f"# HELP {name} {instrument.description}\n# TYPE {name} {kind}\n" in text


def test_open_metrics_is_served_to_who_asks_for_it(endpoint):
    accept = "application/openmetrics-text; version=1.0.0"
    status, content_type, text = get(endpoint, Accept=accept)
    assert (status, content_type.startswith(accept)) == (200, True)
    assert "flue_store_wal_size_bytes" in {family.name for family in open_metrics(text)}


def test_nothing_else_is_served(endpoint):
    assert get(endpoint, "/") == (404, "text/plain", "")
    assert get(endpoint, "/metrics?name=x")[0] == 200
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("POST", "/metrics", body=b"x")
    assert connection.getresponse().status == 501
    connection.close()


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:80", "", "127.0.0.1.x"])
def test_a_web_page_cannot_read_it_under_its_own_name(endpoint, host):
    assert get(endpoint, Host=host) == (403, "text/plain", "")


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "[::1]:9"])
def test_this_machine_can(endpoint, host):
    assert get(endpoint, Host=host)[0] == 200


def test_it_says_nothing_about_its_runtime(endpoint):
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    response.read()
    assert response.getheader("Server").strip() == "flue-grpc"
    connection.close()


class Drip:
    """A client that sends a request without end, a letter at a time, until it is cut."""

    def __init__(self, endpoint):
        self._socket = socket.create_connection(("127.0.0.1", endpoint.port))
        self._socket.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
        self.sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        with self._socket, contextlib.suppress(OSError):
            while not select.select([self._socket], [], [], 0.002)[0]:
                self._socket.sendall(b"a")
                self.sent += 1

    @property
    def was_cut(self):
        return not self._thread.is_alive()


def test_scrapes_are_served_beside_clients_that_never_end_their_request(endpoint, monkeypatch):
    monkeypatch.setattr(REQUEST_SECONDS, 600.0)
    drips = [Drip(endpoint) for _ in range(3)]
    wait_until(lambda: all(drip.sent for drip in drips))
    assert get(endpoint)[0] == 200
    assert not any(drip.was_cut for drip in drips)
    endpoint.close()
    wait_until(lambda: all(drip.was_cut for drip in drips))


def test_a_request_is_bounded_as_a_whole(endpoint, monkeypatch):
    drip = Drip(endpoint)
    wait_until(lambda: drip.sent)
    monkeypatch.setattr(REQUEST_SECONDS, 0.05)
    wait_until(lambda: drip.was_cut)
    monkeypatch.undo()
    assert get(endpoint)[0] == 200


def test_of_too_many_clients_the_oldest_is_cut(endpoint, monkeypatch):
    monkeypatch.setattr(REQUEST_SECONDS, 600.0)
    drips = [Drip(endpoint) for _ in range(METRICS_CONNECTIONS + 1)]
    wait_until(lambda: drips[0].was_cut)
    assert get(endpoint)[0] == 200
    assert not drips[-1].was_cut
    endpoint.close()
    wait_until(lambda: all(drip.was_cut for drip in drips))


def test_the_end_waits_for_no_client(endpoint, monkeypatch):
    monkeypatch.setattr(REQUEST_SECONDS, 600.0)
    silent = socket.create_connection(("127.0.0.1", endpoint.port))
    drip = Drip(endpoint)
    wait_until(lambda: drip.sent)
    closing = threading.Thread(target=endpoint.close)
    closing.start()
    wait_until(lambda: not closing.is_alive())
    with silent, contextlib.suppress(ConnectionResetError):
        assert silent.recv(1) == b""
    wait_until(lambda: drip.was_cut)


def test_a_fault_of_our_own_is_named_and_one_of_a_client_is_not(caplog):
    def fail():
        raise RuntimeError("secret")

    endpoint = MetricsEndpoint("127.0.0.1", 0, PrometheusMetrics(fail).registry)
    try:
        with pytest.raises(http.client.HTTPException):
            get(endpoint)
        wait_until(lambda: caplog.messages)
    finally:
        endpoint.close()
    assert caplog.messages == ["unexpected RuntimeError in the metrics endpoint"]


def test_a_taken_port_is_told_in_words(metrics, endpoint):
    with pytest.raises(ConfigError, match=f"cannot serve metrics on 127.0.0.1:{endpoint.port}"):
        MetricsEndpoint("127.0.0.1", endpoint.port, metrics.registry)
