"""Whether the Store can serve, as seen from the errors of its database."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from flue_grpc.errors import (
    DatabaseCorruptError,
    StoreReadOnlyError,
    StoreStoppedError,
)

if TYPE_CHECKING:
    from flue_grpc.store.values import State


class Health:
    """The state of one open database; safe from any thread.

    "stopped" and "corrupt" last until the database is opened again, "read_only"
    until a write succeeds.
    """

    def __init__(self, state: State = "serving") -> None:
        """Begin with what opening the database has shown."""
        self._state: State = state
        self._lock = threading.Lock()

    @property
    def state(self) -> State:
        """What the Store can do now."""
        return self._state

    def check_writable(self) -> None:
        """Raise StoreStoppedError or DatabaseCorruptError when no write may be tried."""
        if self._state == "stopped":
            raise StoreStoppedError("the Store takes no writes after a failed sync; restart it")
        if self._state == "corrupt":
            raise DatabaseCorruptError("the database is damaged; run `flue-grpc check`")

    def stop(self) -> None:
        """Take no more writes: it is unknown what reached the disk."""
        with self._lock:
            self._state = "stopped"

    def failed(self, error: BaseException) -> None:
        """Learn from a read or write that failed with ``error``."""
        with self._lock:
            if self._state == "stopped":
                return
            if isinstance(error, DatabaseCorruptError):
                self._state = "corrupt"
            elif isinstance(error, StoreReadOnlyError) and self._state == "serving":
                self._state = "read_only"

    def written(self) -> None:
        """Learn that a write succeeded."""
        if self._state == "read_only":
            with self._lock:
                if self._state == "read_only":
                    self._state = "serving"
