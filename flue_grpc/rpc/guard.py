"""Ends calls that wait too long: one thread that looks at all of them (contract rules 4, 5).

A call is watched while it works without a response to send, and while its
client takes none. Telling the guard is one assignment; only the guard's thread
compares times. A stream is ended as well when its credentials hold no longer.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from flue_grpc import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    EndCall = Callable[[grpc.StatusCode, str], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one state of a call may last, in seconds, and how the call ends then."""

    seconds: float
    code: grpc.StatusCode
    message: str


def stalled(seconds: float) -> Patience:
    """Bound the time in which a reader takes nothing."""
    return Patience(seconds, grpc.StatusCode.ABORTED, "the reader took nothing for too long")


def late(seconds: float) -> Patience:
    """Bound the time of work without a response."""
    return Patience(seconds, grpc.StatusCode.DEADLINE_EXCEEDED, "no response was ready in time")


def unread(seconds: float) -> Patience:
    """Bound the time in which a client sends no request."""
    return Patience(seconds, grpc.StatusCode.DEADLINE_EXCEEDED, "no request came in time")


def _always() -> bool:
    return True


class Watched:
    """One call under the guard's eyes; ``ended_with`` says how the guard ended it."""

    __slots__ = ("_end", "_is_allowed", "_state", "ended_with")

    def __init__(self, end: EndCall) -> None:
        self.ended_with: grpc.StatusCode | None = None
        self._end = end
        self._is_allowed: Callable[[], bool] = _always
        self._state: tuple[float, Patience] | None = None

    def only_while(self, is_allowed: Callable[[], bool]) -> None:
        """Have the call end at the first look at which ``is_allowed`` says no."""
        self._is_allowed = is_allowed

    def release(self) -> None:
        """Let the call be: nothing ends it any more."""
        self._is_allowed = _always
        self._state = None

    def expect(self, patience: Patience | None) -> None:
        """Start a state of the call: None may last for ever."""
        self._state = None if patience is None else (time.monotonic(), patience)

    def look(self, now: float) -> None:
        """End the call when its state has lasted too long, or it is not allowed any more."""
        state = self._state
        if not self._is_allowed():
            self._finish(grpc.StatusCode.UNAUTHENTICATED, "the credentials hold no longer")
        elif state is not None:
            since, patience = state
            if now - since >= patience.seconds:
                self._finish(patience.code, patience.message)

    def _finish(self, code: grpc.StatusCode, message: str) -> None:
        self.release()
        self.ended_with = code
        self._end(code, message)


class Guard:
    """Watches calls from one daemon thread, which rests while there are none."""

    def __init__(self, interval: float = limits.GUARD_INTERVAL_SECONDS) -> None:
        """Look every ``interval`` seconds."""
        self._interval = interval
        self._watched: dict[int, Watched] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, end: EndCall) -> Watched:
        """Begin to watch a call, in no state yet; ``end`` ends it from any thread."""
        watched = Watched(end)
        with self._lock:
            self._watched[id(watched)] = watched
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="flue-guard", daemon=True)
                self._thread.start()
        self._work.set()
        return watched

    def forget(self, watched: Watched) -> None:
        """Stop watching a call; again does nothing."""
        watched.release()
        with self._lock:
            self._watched.pop(id(watched), None)

    @property
    def watching(self) -> int:
        """The number of calls under watch."""
        return len(self._watched)

    def close(self) -> None:
        """Stop looking; calls under watch go on unwatched."""
        self._closed.set()
        self._work.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._work.wait()
            self._closed.wait(self._interval)
            with self._lock:
                all_watched = tuple(self._watched.values())
                if not all_watched and not self._closed.is_set():
                    self._work.clear()
            now = time.monotonic()
            for watched in all_watched:
                watched.look(now)
