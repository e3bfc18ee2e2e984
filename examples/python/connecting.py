"""Where the examples find their server, and how they tell what went wrong."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from flue_grpc.client import CallError, Client, Target, connect
from flue_grpc.client.target import read_token
from flue_grpc.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def own_server() -> Iterator[Client]:
    """Connect for the block, and end the program with one line when a call fails."""
    try:
        with connect_from_environment() as client:
            yield client
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads our output has enough; Python would complain of the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (CallError, ConfigError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


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


def quoted(text: str) -> str:
    """Write a text on one line, with nothing in it that a terminal would obey."""
    return "".join(('"', *map(_written, text), '"'))


def _written(character: str) -> str:
    is_plain = character.isprintable() and character not in '"\\'
    return character if is_plain else json.dumps(character)[1:-1]
