"""Finite streams that give way to unary calls (contract rule 5).

Some streams at full speed and their clients keep every core busy, and a call between
them waits for its turn. So while unary calls come in, streams that run beside each other
rest after their work, each in proportion to its own: together they make responses for a
third of the time. They rest between responses, and within work that takes long, such as
a search without a hit. A stream that is alone does not rest, nor does a live one, whose
responses are small and would be late.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flue_grpc import limits
from flue_grpc.rpc.calls import Kind, pausing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import grpc

    from flue_grpc.rpc.calls import Call

    Wait = Callable[[threading.Event, float], bool]


class Courtesy:
    """Knows when a unary call came last, and how many finite streams run."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wait: Wait = threading.Event.wait,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """Take all times in seconds; ``cpu_clock`` tells what the calling thread has used."""
        self._clock = clock
        self._wait = wait
        self._cpu_clock = cpu_clock
        self._calm_from = 0.0
        self._streams = 0
        self._lock = threading.Lock()

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Note a unary call; let a finite stream give way while it works."""
        kind = call.kind
        if kind is Kind.UNARY:
            self._calm_from = self._clock() + limits.GIVE_WAY_SECONDS
        if kind is not Kind.FINITE:
            yield
            return
        self._count(1)
        work = _Work(call.context, self, self._cpu_clock)
        call.give_way = work.give_way
        try:
            with pausing(call.context, work.pause):
                yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._streams += change

    @property
    def is_wanted(self) -> bool:
        """Whether unary calls come while streams run beside each other; cheap."""
        return self._streams > 1 and self._clock() < self._calm_from

    def rest(self, used: float, over: threading.Event) -> None:
        """Rest for ``used`` seconds of work, until the calls stop coming or ``over`` is set."""
        left = limits.GIVE_WAY_FACTOR * used * self._streams
        left = min(left, limits.GIVE_WAY_MAX_SECONDS)
        while left > 0 and self.is_wanted:
            step = min(left, limits.GIVE_WAY_SECONDS)
            if self._wait(over, step):
                return
            left -= step


class _Work:
    """What a stream has done since it last gave way; its worker's thread alone uses it."""

    __slots__ = ("_begun", "_context", "_courtesy", "_cpu_clock", "_over")

    def __init__(
        self,
        context: grpc.ServicerContext,
        courtesy: Courtesy,
        cpu_clock: Callable[[], float],
    ) -> None:
        self._context = context
        self._courtesy = courtesy
        self._cpu_clock = cpu_clock
        self._over: threading.Event | None = None
        self._begun = cpu_clock()

    def give_way(self) -> None:
        """Rest if enough was done for it; never once the call is over."""
        self._rest_after(limits.GIVE_WAY_AFTER_SECONDS)

    def pause(self) -> None:
        """Rest within work that takes long, even before its first response."""
        if self._courtesy.is_wanted:
            self._rest_after(limits.GIVE_WAY_WITHIN_SECONDS)

    def _rest_after(self, least: float) -> None:
        used = self._cpu_clock() - self._begun
        if used < least:
            return
        if self._over is None:
            self._over = threading.Event()
            if not self._context.add_callback(self._over.set):
                self._over.set()
        self._courtesy.rest(used, self._over)
        self._begun = self._cpu_clock()
