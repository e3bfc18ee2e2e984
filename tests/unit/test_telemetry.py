from __future__ import annotations

import builtins
import re
from dataclasses import replace

import pytest

from flue_grpc import config
from flue_grpc.errors import ConfigError
from flue_grpc.telemetry import Telemetry


@pytest.fixture
def settings(tmp_path):
    return config.combine({}, {"HOME": str(tmp_path)}).settings


def test_nothing_observes_when_nothing_is_asked_for(settings):
    telemetry = Telemetry(settings)
    assert telemetry.observing == ()
    telemetry.close()


def test_the_endpoint_says_its_port(settings, caplog):
    caplog.set_level("INFO")
    telemetry = Telemetry(replace(settings, metrics_listen="127.0.0.1:0"))
    (said,) = caplog.messages
    assert re.fullmatch(r"metrics are served on 127\.0\.0\.1:[1-9]\d*", said)
    assert len(telemetry.observing) == 1
    telemetry.close()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("unix:/x", "HOST:PORT"),
        ("nonsense", "neither"),
        ("0.0.0.0:9", "other machines"),
        ("192.0.2.1:9", "other machines"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_in_words(settings, address, words):
    with pytest.raises(ConfigError, match=words):
        Telemetry(replace(settings, metrics_listen=address))


def test_behind_a_sidecar_any_address_will_do(settings):
    chosen = replace(settings, metrics_listen="0.0.0.0:0", insecure_plaintext_tcp=True)
    Telemetry(chosen).close()


@pytest.mark.parametrize(
    ("chosen", "package"),
    [({"metrics_listen": "127.0.0.1:0"}, "prometheus"), ({"otel": True}, "otel")],
)
def test_a_missing_extra_is_named(settings, monkeypatch, chosen, package):
    load = builtins.__import__

    def refuse(name, *rest):
        if name.startswith(("prometheus_client", "opentelemetry", "flue_grpc.observability.")):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ConfigError, match=rf"flue-grpc\[{package}\]"):
        Telemetry(replace(settings, **chosen))
