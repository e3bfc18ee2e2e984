"""Plots of how cost grows with work, as SVG: ``python benchmarks/plots.py``.

Each point is a whole process or call, measured now; the line is through the median of
each size. ``docs/performance.md`` shows the files.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from homes import home, size_of
from processes import python
from servers import without_scanner

from flue.agentindex.v1 import agent_index_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from servers import Product

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 150, 40, 50
_COLOURS = ("#1f6feb", "#bf5700", "#2e7d32")
_SIZES = ((20, 33), (60, 100), (200, 333), (600, 1000))
_LARGE = (3000, 5000)
_ROUNDS = 3


@dataclass(frozen=True)
class Line:
    """A name and its points (x, y), both above zero."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Plot:
    """Lines over two logarithmic axes."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]

    def svg(self) -> str:
        """Draw it."""
        points = [point for line in self.lines for point in line.points]
        across = _Axis([x for x, _ in points], _LEFT, _WIDTH - _RIGHT)
        up = _Axis([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
            'font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{_LEFT}" y="22" font-size="15">{self.title}</text>',
            *_grid(across, up),
            f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{self.x}</text>',
            f'<text transform="translate(16 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{self.y}</text>',
        ]
        for line, colour in zip(self.lines, _COLOURS, strict=False):
            parts += _drawn(line, colour, across, up)
        return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Places values on a logarithmic scale of whole decades."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self._start + part * (self._end - self._start), 1)

    @property
    def decades(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def _grid(across: _Axis, up: _Axis) -> list[str]:
    parts: list[str] = []
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value in across.decades:
        x = across.at(value)
        parts.append(f'<path d="M{x} {_TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>')
    for value in up.decades:
        y = up.at(value)
        parts.append(f'<path d="M{_LEFT} {y}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{value:g}</text>')
    return parts


def _drawn(line: Line, colour: str, across: _Axis, up: _Axis) -> list[str]:
    places = [(across.at(x), up.at(y)) for x, y in line.points]
    path = "L".join(f"{x} {y}" for x, y in places)
    last_x, last_y = places[-1]
    return [
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places),
        f'<text x="{last_x + 8}" y="{last_y + 4}" fill="{colour}">{line.name}</text>',
    ]


def sweeps(work: Path) -> Plot:
    """Measure CPU and peak memory of cold sweeps, and of reading alone."""
    here = Path(__file__).parent
    sweep: list[tuple[float, float]] = []
    read: list[tuple[float, float]] = []
    for size in (*_SIZES, _LARGE):
        path = home(work, *size)
        megabytes = size_of(path) / 1e6
        for script, points in (("cold_sweep.py", sweep), ("read_pass.py", read)):
            rounds = 1 if size is _LARGE else _ROUNDS
            runs = [python(str(here / script), str(path)).run().cpu for _ in range(rounds)]
            points.append((megabytes, median(runs)))
    lines = (Line("cold sweep", tuple(sweep)), Line("reading alone", tuple(read)))
    return Plot("A first sweep grows with the bytes", "MB of transcripts", "seconds of CPU", lines)


def calls(work: Path) -> Plot:
    """Measure what a search, a list and a page cost the server, by the size of the home."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for size in _SIZES:
        path = home(work, *size)
        with without_scanner(path, work, "--no-ranked") as served:
            served.swept()
            for name, milliseconds in _costs(served):
                lines.setdefault(name, []).append((size_of(path) / 1e6, milliseconds))
    drawn = tuple(Line(name, tuple(points)) for name, points in lines.items())
    return Plot(
        "Only a search that reads all grows", "MB of transcripts", "ms of server CPU", drawn
    )


def _costs(served: Product) -> Iterator[tuple[str, float]]:
    index = served.index
    first = next(iter(index.Snapshot(agent_index_pb2.SnapshotRequest(limit=1)))).summaries[0]
    search = agent_index_pb2.SearchRequest(query="qzxjvw gone", max_bytes=1 << 40)
    page = agent_index_pb2.ReadPageRequest(
        tool=first.tool, id=first.id, direction=agent_index_pb2.DIRECTION_BACKWARD
    )
    listing = agent_index_pb2.SnapshotRequest(limit=50)
    yield "search, all read", _cost(served, lambda: list(index.Search(search)), 3)
    yield "last page", _cost(served, lambda: index.ReadPage(page), 50)
    yield "list of 50", _cost(served, lambda: list(index.Snapshot(listing)), 50)


def _cost(served: Product, ask: Callable[[], object], count: int) -> float:
    """Return the milliseconds of the server's CPU for one call."""
    ask()
    before = served.cpu_seconds()
    for _ in range(count):
        ask()
    return (served.cpu_seconds() - before) * 1000 / count


def main() -> None:
    """Measure and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(".cache/bench"))
    parser.add_argument("--out", type=Path, default=Path("docs/plots"))
    asked = parser.parse_args()
    work = asked.work.resolve()
    asked.out.mkdir(parents=True, exist_ok=True)
    for name, plot in (("sweep.svg", sweeps(work)), ("calls.svg", calls(work))):
        (asked.out / name).write_text(plot.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
