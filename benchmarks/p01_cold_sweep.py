"""P1: a cold sweep of a home, against reading its files once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, Series, compare, interleave
from homes import home, size_of
from processes import python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

_HERE = Path(__file__).parent


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the ratios of CPU and of wall time, both of whole processes."""
    path = home(scale.work, *((600, 1000) if scale.name == "full" else (60, 100)))
    megabytes = size_of(path) / 1e6
    walls: dict[str, list[float]] = {"cold_sweep.py": [], "read_pass.py": []}

    def cpu(script: str) -> float:
        done = python(str(_HERE / script), str(path)).run()
        walls[script].append(done.wall)
        return done.cpu * 1000

    ours, floor = interleave(
        min(scale.rounds, 5),
        ("sweep", "ms CPU", lambda: cpu("cold_sweep.py")),
        ("readinto", "ms CPU", lambda: cpu("read_pass.py")),
    )
    yield compare(Goal("P1", f"cold sweep, {megabytes:.0f} MB", "at most", 6.0), ours, floor)
    wall = [_series(name, values[1:]) for name, values in walls.items()]
    yield compare(Goal("P1", f"cold sweep, {megabytes:.0f} MB, wall"), *wall)


def _series(script: str, walls: list[float]) -> Series:
    """Return wall times in milliseconds."""
    return Series(script.removesuffix(".py"), "ms", tuple(wall * 1000 for wall in walls))
