"""Latencies of calls, alone and beside other work."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from harness import Series, percentile

if TYPE_CHECKING:
    from collections.abc import Callable


def sample(call: Callable[[], object], seconds: float = 0.0, count: int = 0) -> list[float]:
    """Call again and again, for ``seconds`` or ``count`` times; return milliseconds each."""
    samples: list[float] = []
    until = time.perf_counter() + seconds
    while len(samples) < count or time.perf_counter() < until:
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1000)
    return samples


def while_true(call: Callable[[], object], goes_on: Callable[[], bool]) -> list[float]:
    """Call again and again while ``goes_on``; return milliseconds each."""
    samples: list[float] = []
    while goes_on():
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1000)
    return samples


def p50(samples: list[float]) -> float:
    """Return the median."""
    return statistics.median(samples)


def p99(samples: list[float]) -> float:
    """Return what one in a hundred passes."""
    return percentile(samples, 0.99)


def series(name: str, values: list[float]) -> Series:
    """Name some figures in milliseconds."""
    return Series(name, "ms", tuple(values))
