"""Metrics and traces as the settings ask for them; nothing is imported for what is off."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from flue_grpc.errors import ConfigError
from flue_grpc.listeners import TcpAddress, parse_address
from flue_grpc.readings import readings_of
from flue_grpc.rpc.interceptors.observation import Observation
from flue_grpc.security.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flue_grpc.observability.calls import CallObserver
    from flue_grpc.observability.instruments import Reading
    from flue_grpc.rpc.interceptors.chain import Interceptor
    from flue_grpc.services import Services
    from flue_grpc.settings import Settings


_LOGGER: Final = logging.getLogger(__name__)


class Telemetry:
    """What observes the calls of one server, from before it listens until after it drained."""

    def __init__(self, settings: Settings) -> None:
        """Start what the settings ask for; raises ConfigError when that is not possible."""
        self._services: Services | None = None
        observers: list[CallObserver] = []
        with ExitStack() as opened:
            if settings.metrics_listen:
                observers.append(self._prometheus(settings, opened))
            if settings.otel:
                observers.append(self._otlp(opened))
            self._opened = opened.pop_all()
        self._observers = tuple(observers)

    @property
    def observing(self) -> Sequence[Interceptor]:
        """The interceptors that see how calls end; none when everything is off."""
        return (Observation(self._observers),) if self._observers else ()

    def watch(self, services: Services) -> None:
        """Read the product's own values from these services from now on."""
        self._services = services

    def close(self) -> None:
        """Send what is held, the last values of closed services included, and stop."""
        self._opened.close()
        self._services = None

    def _readings(self) -> Iterable[Reading]:
        services = self._services
        return () if services is None else readings_of(services)

    def _prometheus(self, settings: Settings, opened: ExitStack) -> CallObserver:
        address = _metrics_address(settings)
        try:
            from flue_grpc.observability.prometheus import (  # noqa: PLC0415  (an extra)
                MetricsEndpoint,
                PrometheusMetrics,
            )
        except ImportError as error:
            raise ConfigError(
                "metrics_listen needs its package: pip install 'flue-grpc[prometheus]'"
            ) from error
        metrics = PrometheusMetrics(self._readings)
        endpoint = MetricsEndpoint(address.host, address.port, metrics.registry)
        opened.callback(endpoint.close)
        _LOGGER.info("metrics are served on %s", TcpAddress(address.host, endpoint.port))
        return metrics

    def _otlp(self, opened: ExitStack) -> CallObserver:
        try:
            from flue_grpc.observability.otlp import OtlpTelemetry  # noqa: PLC0415  (an extra)
        except ImportError as error:
            raise ConfigError("otel needs its packages: pip install 'flue-grpc[otel]'") from error
        from importlib.metadata import version  # noqa: PLC0415  (slow, and rarely needed)

        telemetry = OtlpTelemetry(self._readings, version("flue-grpc"))
        opened.callback(telemetry.close)
        return telemetry.observer


def _metrics_address(settings: Settings) -> TcpAddress:
    address = parse_address(settings.metrics_listen)
    if not isinstance(address, TcpAddress):
        raise ConfigError("metrics_listen must be HOST:PORT")
    if not settings.insecure_plaintext_tcp and not is_loopback(address.host):
        raise ConfigError(
            f"metrics_listen: {address.host} can be reached from other machines; use a loopback "
            "address, or --insecure-plaintext-tcp behind a sidecar that asks for credentials"
        )
    return address
