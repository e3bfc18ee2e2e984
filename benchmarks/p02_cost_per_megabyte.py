"""P2: the CPU of a cold sweep per MB, for homes of 60 MB to 3 GB, without the start of Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, Series, absolute, interleave
from homes import home, size_of
from processes import python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

_SCRIPT = str(Path(__file__).with_name("cold_sweep.py"))
_FULL = ((60, 100), (600, 1000), (3000, 5000))
_QUICK = ((20, 33), (60, 100))


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the cost of each size and how much they differ."""
    empty = scale.work / "home-none"
    empty.mkdir(exist_ok=True)
    paths = [home(scale.work, *size) for size in (_FULL if scale.name == "full" else _QUICK)]
    sizes = [size_of(path) / 1e6 for path in paths]
    start, *sweeps = interleave(
        min(scale.rounds, 3),
        ("an empty home", "s", lambda: _cpu(empty)),
        *(
            (f"{size:.0f} MB", "s", lambda path=path: _cpu(path))
            for path, size in zip(paths, sizes, strict=True)
        ),
        warm_up=0,
    )
    costs = [
        Series(
            sweep.name,
            "ms CPU per MB",
            tuple((sample - start.median) * 1000 / size for sample in sweep.samples),
        )
        for sweep, size in zip(sweeps, sizes, strict=True)
    ]
    for cost in costs:
        yield absolute(Goal("P2", f"cold sweep of {cost.name}, without the start"), cost)
    least = [cost.best for cost in costs]
    ratio = Series("dearest / cheapest", "", (max(least) / min(least),))
    yield absolute(Goal("P2", "cost per MB over all sizes", "at most", 1.2), ratio)


def _cpu(path: Path) -> float:
    return python(_SCRIPT, str(path)).run().cpu
