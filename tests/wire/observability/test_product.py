"""Metrics, traces and log lines of the product as it is run."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flue_grpc.observability.instruments import PRODUCT_INSTRUMENTS
from flue_grpc.observability.prometheus import prometheus_name
from tests.wire.security.contract_calls import RPCS, prepare
from tests.wire.security.process import running

BY_NAME = {rpc.name: rpc for rpc in RPCS}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = ("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")


def scrape(product):
    line = product.logged("metrics are served on ")
    address = re.search(r"metrics are served on (127\.0\.0\.1:\d+)", line)[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as response:
        text = response.read().decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def product():
    with running("--metrics-listen", "127.0.0.1:0") as started:
        with started.channel() as channel:
            prepare(channel)
            BY_NAME["Snapshot"].call(channel, BY_NAME["Snapshot"].request())
        yield started


def test_calls_are_counted(product):
    found = scrape(product)
    method = ("grpc_method", "flue.store.v1.Store/CreateSession")
    assert found["grpc_server_call_started_total", method] == 2
    status = ("grpc_status", "OK")
    assert found["grpc_server_call_duration_seconds_count", method, status] == 2


def test_the_product_tells_of_itself(product, wait_until):
    wait_until(lambda: scrape(product).get(("flue_index_sweeps_total",), 0) > 0)
    found = scrape(product)
    assert found["flue_store_writes_total",] == 3
    assert 1 <= found["flue_store_commits_total",] <= 4
    assert found["flue_store_database_size_bytes",] > 0
    assert found["flue_store_wal_size_bytes",] >= 0
    assert found["flue_store_state", ("state", "serving")] == 1
    assert found["flue_store_queue",] == 0
    assert found["flue_index_transcripts",] == 1
    assert found["flue_budget_limit", ("budget", "live")] == 256
    assert found["flue_budget_in_use", ("budget", "unary")] == 0
    assert found["process_resident_memory_bytes",] > 0


def test_every_instrument_has_a_reading(product, wait_until):
    wait_until(lambda: scrape(product).get(("flue_index_sweeps_total",), 0) > 0)
    names = {name for name, *_ in scrape(product)}
    for instrument in PRODUCT_INSTRUMENTS:
        suffix = "_total" if instrument.kind == "counter" else ""
        assert f"{prometheus_name(instrument)}{suffix}" in names


def test_a_request_without_end_holds_up_neither_scrapes_nor_the_end():
    with running("--metrics-listen", "127.0.0.1:0") as product:
        line = product.logged("metrics are served on ")
        port = int(re.search(r"metrics are served on 127\.0\.0\.1:(\d+)", line)[1])
        with socket.create_connection(("127.0.0.1", port)) as drip:
            drip.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
            over = threading.Event()
            thread = threading.Thread(target=keep_sending, args=(drip, over))
            thread.start()
            try:
                assert scrape(product)["flue_store_state", ("state", "serving")] == 1
                assert product.stop() == 0
            finally:
                over.set()
                thread.join()


def keep_sending(drip, over):
    """Send a letter of a header now and then, until told or cut."""
    with contextlib.suppress(OSError):
        while not over.wait(0.05):
            drip.sendall(b"a")


def test_metrics_hold_no_content_and_no_path(product):
    text = str(scrape(product))
    assert str(product.directory) not in text
    assert "hello" not in text


def test_log_lines_carry_the_trace_of_their_call():
    with running("--log-format", "json") as product:
        with product.channel() as channel:
            rpc = BY_NAME["ListSessions"]
            rpc.call(channel, rpc.request(), metadata=[TRACEPARENT])
            rpc.call(channel, rpc.request(), metadata=[("traceparent", "rubbish")])
        assert product.stop() == 0
        lines = [json.loads(line) for line in product.log.read_text().splitlines()]
    calls = [line for line in lines if line["logger"] == "flue_grpc.access"]
    assert [call["trace"] for call in calls] == [TRACE, ""]
    assert {
        *("time", "level", "call", "method", "code", "duration_ms"),
        *("peer", "principal", "received_bytes", "sent_bytes"),
    } <= set(calls[0])


def test_a_server_without_them_imports_neither():
    script = (
        "import sys\n"
        "import flue_grpc.server, flue_grpc.commands.serve\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'prometheus_client', 'opentelemetry', 'http'}, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])


def test_spans_and_metrics_are_sent_to_a_collector(collector):
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    with running("--otel", environment=environment) as product:
        with product.channel() as channel:
            rpc = BY_NAME["ListSessions"]
            rpc.call(channel, rpc.request(), metadata=[TRACEPARENT])
        assert product.stop() == 0
    (span,) = collector.spans
    assert (span.name, span.trace_id.hex()) == ("flue.store.v1.Store/ListSessions", TRACE)
    assert {"grpc.server.call.duration", "flue.store.commits"} <= set(collector.metrics)
