"""Finite streams that give way to unary calls (contract rule 5).

A few streams at full speed and their clients keep every core busy, and a call between
them waits for its turn. So while unary calls come in, all finite streams together make
responses for a part of the time only; without such calls nothing rests. A live stream
gives no way: what it sends is small, and late when it rests.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flue_grpc import limits
from flue_grpc.rpc.calls import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flue_grpc.rpc.calls import Call


class Courtesy:
    """Knows when a unary call came last, and lets one stream at a time rest for it."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """Take all times in seconds; ``cpu_clock`` tells what the calling thread has used."""
        self._clock = clock
        self._sleep = sleep
        self._cpu_clock = cpu_clock
        self._resting = threading.Lock()
        self._calm_from = 0.0

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Note a unary call; let a finite stream give way between its responses."""
        kind = call.kind
        if kind is Kind.UNARY:
            self._calm_from = self._clock() + limits.GIVE_WAY_SECONDS
        elif kind is Kind.FINITE:
            call.give_way = _Work(self._cpu_clock, self._rest).give_way
        yield

    def _rest(self, seconds: float) -> None:
        if self._clock() < self._calm_from:
            with self._resting:
                self._sleep(seconds)


class _Work:
    """What a stream has done since it last gave way; its worker's thread alone uses it."""

    __slots__ = ("_begun", "_cpu_clock", "_rest")

    def __init__(self, cpu_clock: Callable[[], float], rest: Callable[[float], None]) -> None:
        self._cpu_clock = cpu_clock
        self._rest = rest
        self._begun = cpu_clock()

    def give_way(self) -> None:
        """Rest if that was much, some times as long as it took."""
        used = self._cpu_clock() - self._begun
        if used >= limits.GIVE_WAY_AFTER_SECONDS:
            self._rest(min(limits.GIVE_WAY_FACTOR * used, limits.GIVE_WAY_SECONDS))
            self._begun = self._cpu_clock()
