"""Opening a connection with the sizes and timings that both sides agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from flue_grpc.limits import (
    CLIENT_RECEIVE_BYTES,
    KEEPALIVE_SECONDS,
    KEEPALIVE_TIMEOUT_SECONDS,
    RECONNECT_FIRST_MS,
    RECONNECT_MOST_MS,
)

if TYPE_CHECKING:
    from flue_grpc.client.target import Target


def open_channel(target: Target) -> grpc.Channel:
    """Make a channel, which connects when it is first used.

    Raises ConfigError for a target that can never work.
    """
    target.check()
    options = _options(target)
    if not target.is_secure:
        return grpc.insecure_channel(target.uri, options=options)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=target.root_certificates,
        private_key=target.private_key,
        certificate_chain=target.certificate,
    )
    return grpc.secure_channel(target.uri, credentials, options=options)


def _options(target: Target) -> list[tuple[str, int | str]]:
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", CLIENT_RECEIVE_BYTES),
        ("grpc.keepalive_time_ms", KEEPALIVE_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_SECONDS * 1000),
        ("grpc.initial_reconnect_backoff_ms", RECONNECT_FIRST_MS),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_MOST_MS),
        # Repeats are made by retry.py, which knows what is safe to repeat.
        ("grpc.enable_retries", 0),
        # A second channel of this process must not share a connection's state.
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if target.server_name:
        options.append(("grpc.ssl_target_name_override", target.server_name))
    return options
