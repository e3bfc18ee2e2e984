"""Opens a Store, which adopts or migrates what lies there, and ends."""

from __future__ import annotations

from pathlib import Path

from flue_grpc.store.store import Store


def main(arguments):
    Store.open(Path(arguments[0])).close()
    return 0
