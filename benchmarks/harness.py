"""Measure product and reference in one run, so that only their ratio is judged.

Machines are noisy: each round measures both sides, one after the other. The best
round of one side is compared with the best of the other, for whatever else runs can
only make a round worse; the table shows the ratio of the medians and the spread too.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Sense = Literal["at most", "at least", "report"]


@dataclass(frozen=True)
class Scale:
    """How large a run is: ``full`` follows the targets, ``quick`` shows the direction."""

    name: Literal["full", "quick"]
    rounds: int
    work: Path

    def pick(self, full: int, quick: int) -> int:
        """Choose a size by the name of the scale."""
        return full if self.name == "full" else quick


@dataclass(frozen=True)
class Series:
    """Samples of one side in one unit."""

    name: str
    unit: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        """The sample that other load disturbed least: the largest rate, or the least cost."""
        return max(self.samples) if "/s" in self.unit else min(self.samples)

    @property
    def spread(self) -> float:
        """The interquartile range as a part of the median, 0 with under four samples."""
        if len(self.samples) < 4 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4)
        return (high - low) / self.median


@dataclass(frozen=True)
class Goal:
    """What a figure is held against: ``bound`` on the given side."""

    target: str
    what: str
    sense: Sense = "report"
    bound: float = 0.0
    note: str = ""

    def reached(self, value: float) -> bool:
        """Say whether ``value`` is on the right side of the bound."""
        if self.sense == "report":
            return True
        return value <= self.bound if self.sense == "at most" else value >= self.bound


@dataclass(frozen=True)
class Figure:
    """One row of the table: what was measured, with what it is compared, and the goal."""

    goal: Goal
    product: Series
    reference: Series | None
    value: float

    @property
    def of_medians(self) -> float | None:
        """The same ratio of the middle rounds; None without a reference."""
        if self.reference is None or not self.reference.median:
            return None
        return self.product.median / self.reference.median

    @property
    def met(self) -> bool:
        """Say whether the goal is reached."""
        return self.goal.reached(self.value)


def compare(goal: Goal, product: Series, reference: Series) -> Figure:
    """Make the row of a ratio of best rounds."""
    ratio = product.best / reference.best if reference.best else float("inf")
    return Figure(goal, product, reference, ratio)


def absolute(goal: Goal, product: Series) -> Figure:
    """Make the row of a figure without a reference, such as a peak of memory."""
    return Figure(goal, product, None, product.median)


def interleave(
    rounds: int, *sides: tuple[str, str, Callable[[], float]], warm_up: int = 1
) -> tuple[Series, ...]:
    """Call each (name, unit, measure) once a round, in turn; return a series for each."""
    collected: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds + warm_up):
        for samples, (_, _, measure) in zip(collected, sides, strict=True):
            figure = measure()
            if turn >= warm_up:
                samples.append(figure)
    return tuple(
        Series(name, unit, tuple(samples))
        for (name, unit, _), samples in zip(sides, collected, strict=True)
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def percentile(samples: Sequence[float], part: float) -> float:
    """Return the sample that ``part`` (0 to 1) of the samples do not pass."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
