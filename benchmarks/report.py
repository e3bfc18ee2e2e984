"""The table for people and the JSON for machines: ``python benchmarks/report.py FILE...``."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import Goal, Series, absolute, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness import Figure, Scale

_PACKAGES = ("grpcio", "protobuf", "apsw", "msgspec")
_HEAD = (
    *("target", "what", "product", "reference", "figure", "of medians"),
    *("goal", "verdict", "spread"),
)


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    rows = [_HEAD, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _row(figure: Figure) -> tuple[str, ...]:
    goal = figure.goal
    is_report = goal.sense == "report"
    bound = "" if is_report else f"{goal.sense} {goal.bound:g}"
    verdict = "" if is_report else "met" if figure.met else "MISSED"
    spread = f"{figure.product.spread:.0%}"
    if figure.reference:
        spread += f" / {figure.reference.spread:.0%}"
    return (
        goal.target,
        goal.what,
        _side(figure.product),
        _side(figure.reference) if figure.reference else "",
        f"{figure.value:.3g}",
        "" if figure.of_medians is None else f"{figure.of_medians:.3g}",
        bound,
        verdict,
        spread,
    )


def _side(series: Series) -> str:
    return f"{series.median:.3g} {series.unit} ({series.name})"


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    cpu = "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": str(os.cpu_count()),
        "cpu": cpu,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.2f}",
    } | {name: version(name) for name in _PACKAGES}


def from_json(path: Path) -> list[Figure]:
    """Read the figures of an earlier run."""
    return [
        compare(goal, product, _series(figure["reference"]))
        if figure["reference"]
        else absolute(goal, product)
        for figure in json.loads(path.read_text())["figures"]
        for goal, product in [(Goal(**figure["goal"]), _series(figure["product"]))]
    ]


def _series(fields: dict[str, Any]) -> Series:
    return Series(fields["name"], fields["unit"], tuple(fields["samples"]))


def write(path: Path, scale: Scale, figures: Sequence[Figure]) -> None:
    """Write everything as JSON: each sample too, so that a later reader can judge."""
    body = {
        "scale": scale.name,
        "machine": machine(),
        "figures": [
            asdict(figure) | {"met": figure.met, "median": figure.product.median}
            for figure in figures
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    print(table([figure for name in sys.argv[1:] for figure in from_json(Path(name))]))
