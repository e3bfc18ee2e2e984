"""Shutdown: no new calls, time for those that run (contract "Transport and trust")."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc

from flue_grpc.errors import DrainingError
from flue_grpc.rpc.calls import Kind, end_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.rpc.calls import Call


class Drain:
    """Counts the calls that run, and refuses more once ``begin`` was called."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._is_draining = False
        self._running = 0
        self._wakes: dict[object, Callable[[], None]] = {}

    @property
    def is_draining(self) -> bool:
        """Whether the server is shutting down."""
        return self._is_draining

    @property
    def running(self) -> int:
        """The number of calls under way."""
        return self._running

    def begin(self) -> None:
        """Refuse new calls from now on and wake the streams that would never end."""
        with self._state:
            self._is_draining = True
            wakes = tuple(self._wakes.values())
            self._wakes.clear()
        for wake in wakes:
            wake()

    def wait(self, seconds: float) -> bool:
        """Wait until no call runs; False when some still do after ``seconds``."""
        with self._state:
            return self._state.wait_for(lambda: not self._running, timeout=seconds)

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have ``wake`` called once when the drain begins, at once if it has; returns the undo."""
        key = object()
        with self._state:
            if not self._is_draining:
                self._wakes[key] = wake
                return lambda: self._unsubscribe(key)
        wake()
        return lambda: None

    def _unsubscribe(self, key: object) -> None:
        with self._state:
            self._wakes.pop(key, None)

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Refuse the call while draining; count it otherwise. Health is asked to the end."""
        if call.method.kind is Kind.HEALTH:
            yield
            return
        with self._state:
            if self._is_draining:
                raise DrainingError("the server is shutting down")
            self._running += 1
        try:
            if call.method.kind is Kind.REFLECTION:
                with self._ended(call.context):
                    yield
            else:
                yield
        finally:
            with self._state:
                self._running -= 1
                if not self._running:
                    self._state.notify_all()

    @contextmanager
    def _ended(self, context: grpc.ServicerContext) -> Iterator[None]:
        """End a stream that waits for its client and not for us."""
        unavailable = grpc.StatusCode.UNAVAILABLE
        undo = self.subscribe(lambda: end_call(context, unavailable, "the server is shutting down"))
        try:
            yield
        finally:
            undo()
