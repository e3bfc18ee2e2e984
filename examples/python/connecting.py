"""Where the examples find their server."""

from __future__ import annotations

import os
from pathlib import Path

from flue_grpc.client import Client, Target, connect
from flue_grpc.client.target import read_token


def connect_from_environment() -> Client:
    """Read FLUE_ADDRESS, FLUE_TOKEN_FILE and FLUE_CA_FILE.

    Without an address it is this user's own server on its default socket.
    """
    address = os.environ.get("FLUE_ADDRESS", "")
    if not address:
        return connect()
    token = os.environ.get("FLUE_TOKEN_FILE", "")
    ca = os.environ.get("FLUE_CA_FILE", "")
    return Client(
        Target(
            address=address,
            token=read_token(Path(token)) if token else "",
            root_certificates=Path(ca).read_bytes() if ca else None,
        )
    )
