"""The Prometheus endpoint (extra ``prometheus``): ``GET /metrics`` on its own port."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, ClassVar, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from flue_grpc.errors import ConfigError
from flue_grpc.limits import METRICS_POLL_SECONDS
from flue_grpc.observability.bounded_http import BoundedHTTPServer
from flue_grpc.observability.instruments import (
    CALL_DURATION,
    CALL_RECEIVED,
    CALL_SENT,
    CALL_STARTED,
    PRODUCT_INSTRUMENTS,
)
from flue_grpc.security.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flue_grpc.observability.calls import FinishedCall
    from flue_grpc.observability.instruments import Instrument, Reading, ReadingSource

_UNIT_SUFFIXES: Final = {"s": "_seconds", "By": "_bytes"}
_PATH: Final = "/metrics"


class PrometheusMetrics:
    """Counts calls in a registry of its own; a CallObserver."""

    def __init__(self, source: ReadingSource) -> None:
        """Take what to ask for the product's own values at every scrape."""
        self.registry = CollectorRegistry()
        self._started = Counter(
            prometheus_name(CALL_STARTED),
            CALL_STARTED.description,
            _labels(CALL_STARTED),
            registry=self.registry,
        )
        self._duration = self._histogram(CALL_DURATION)
        self._sent = self._histogram(CALL_SENT)
        self._received = self._histogram(CALL_RECEIVED)
        self.registry.register(_ProductCollector(source))
        ProcessCollector(registry=self.registry)

    def started(self, method: str) -> None:
        """Count a call that has begun."""
        self._started.labels(method).inc()

    def finished(self, call: FinishedCall) -> None:
        """Record a call that is over."""
        labels = (call.method, call.status)
        self._duration.labels(*labels).observe(call.seconds)
        self._sent.labels(*labels).observe(call.sent_bytes)
        self._received.labels(*labels).observe(call.received_bytes)

    def _histogram(self, instrument: Instrument) -> Histogram:
        return Histogram(
            prometheus_name(instrument),
            instrument.description,
            _labels(instrument),
            buckets=instrument.buckets,
            registry=self.registry,
        )


class MetricsEndpoint:
    """Serves one registry over plain HTTP until it is closed.

    No client keeps another waiting, or the end of it. On a loopback
    address only requests for a loopback host are answered, so that no web page
    can read the numbers by pointing its own name there.
    """

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        """Listen at once; raises ConfigError when the address cannot be used."""
        handler = type(
            "_BoundHandler",
            (_Handler,),
            {"registry": registry, "local_only": is_loopback(host)},
        )
        try:
            self._server = BoundedHTTPServer((host, port), handler)
        except OSError as error:
            raise ConfigError(f"cannot serve metrics on {host}:{port}: {error.strerror}") from error
        self.port = int(self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(METRICS_POLL_SECONDS,),
            name="metrics-endpoint",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and cut the requests under way."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    registry: ClassVar[CollectorRegistry]
    local_only: ClassVar[bool]
    server_version = "flue-grpc"
    sys_version = ""

    def do_GET(self) -> None:  # the name that http.server calls
        if self.local_only and not is_loopback(_host_of(self.headers.get("Host", ""))):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", b"")
        elif self.path.partition("?")[0] != _PATH:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"")
        else:
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, encode(self.registry))

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        """Say nothing: a scrape is no event."""


class _ProductCollector(Collector):
    def __init__(self, source: ReadingSource) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        readings = list(self._source())
        for instrument in PRODUCT_INSTRUMENTS:
            yield _family(instrument, [r for r in readings if r.name == instrument.name])


def prometheus_name(instrument: Instrument) -> str:
    """Translate a name as the OpenTelemetry exporter does: ``a.b`` in ``By`` is ``a_b_bytes``."""
    return instrument.name.replace(".", "_") + _UNIT_SUFFIXES.get(instrument.unit, "")


def _family(instrument: Instrument, readings: Iterable[Reading]) -> Metric:
    kind = CounterMetricFamily if instrument.kind == "counter" else GaugeMetricFamily
    family = kind(prometheus_name(instrument), instrument.description, labels=_labels(instrument))
    for reading in readings:
        family.add_metric(reading.labels, reading.value)
    return family


def _labels(instrument: Instrument) -> tuple[str, ...]:
    return tuple(label.replace(".", "_") for label in instrument.labels)


def _host_of(value: str) -> str:
    """Take the port off a Host header: ``[::1]:9`` and ``localhost:9`` have one."""
    if value.startswith("["):
        return value.partition("]")[0] + "]"
    return value.partition(":")[0]
