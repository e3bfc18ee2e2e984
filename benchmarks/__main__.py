"""Run the benchmarks: ``python benchmarks [--only P7,P8] [--quick] [--json FILE]``."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import report
from harness import Figure, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator


def targets(only: str) -> list[str]:
    """Return the names of the modules to run, in the order of their numbers."""
    wanted = {part.strip().upper() for part in only.split(",") if part.strip()}
    modules = sorted(path.stem for path in Path(__file__).parent.glob("p[0-9][0-9]_*.py"))
    return [name for name in modules if not wanted or f"P{int(name[1:3])}" in wanted]


def run(names: list[str], scale: Scale) -> Iterator[Figure]:
    """Yield each module's figures; say on stderr which one is running."""
    for name in names:
        print(f"... {name}", file=sys.stderr, flush=True)
        yield from importlib.import_module(name).measure(scale)


def main() -> int:
    """Measure, print the table, write the JSON; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="targets, such as P7,P8; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, under two minutes")
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/latest.json"))
    parser.add_argument(
        "--work", type=Path, default=Path(".cache/bench"), help="made homes are kept here"
    )
    asked = parser.parse_args()
    work = asked.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    scale = Scale("quick", 2, work) if asked.quick else Scale("full", 7, work)
    figures: list[Figure] = []
    for figure in run(targets(asked.only), scale):
        figures.append(figure)
        report.write(asked.json, scale, figures)  # what is measured is kept, whatever comes
    print(report.table(figures))
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
