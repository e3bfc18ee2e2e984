"""P3: the peak memory of a cold sweep, its worker included, with a line of 100 MB in the home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness import Goal, Series, absolute
from homes import home, size_of
from processes import python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Figure, Scale

_SCRIPT = str(Path(__file__).with_name("cold_sweep.py"))
_HUGE = ".claude/projects/-home-dev-shop/00000000-0000-4000-8000-000000000000.jsonl"


def measure(scale: Scale) -> Iterator[Figure]:
    """Yield the peak."""
    path = home(scale.work, *((3000, 5000) if scale.name == "full" else (60, 100)))
    huge = path / _HUGE
    with huge.open("w", encoding="utf-8") as file:
        body = '{"type":"user","sessionId":"s","timestamp":"2026-01-05T08:00:00.000Z","message":'
        file.write(f'{body}{{"role":"user","content":"before"}}}}\n')
        file.write(f'{body}{{"role":"user","content":"')
        file.writelines("what was pasted " * 65536 for _ in range(scale.pick(100, 40)))
        file.write(f'"}}}}\n{body}{{"role":"user","content":"behind"}}}}\n')
    try:
        size = size_of(path) / 1e6
        peaks = tuple(python(_SCRIPT, str(path)).run().peak_mib for _ in range(scale.pick(3, 1)))
    finally:
        huge.unlink()
    goal = Goal("P3", f"peak of a cold sweep of {size:.0f} MB", "at most", 150.0)
    yield absolute(goal, Series("server and worker", "MiB", peaks))
