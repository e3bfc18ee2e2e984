"""Run the alternatives beside the product: ``python benchmarks/peers.py [--quick]``.

``scripts/bench-peers`` installs them, each into an environment of its own, and calls this.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import peer_agentsview
import peer_ccusage
import peer_stores
import report
from harness import Scale


def main() -> int:
    """Measure, print the table, write the JSON; 1 when totals of tokens differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--peers", type=Path, default=Path(".cache/peers"))
    parser.add_argument("--work", type=Path, default=Path(".cache/bench"))
    parser.add_argument("--json", type=Path, default=Path(".cache/bench/peers.json"))
    asked = parser.parse_args()
    work, peers = asked.work.resolve(), asked.peers.resolve()
    work.mkdir(parents=True, exist_ok=True)
    scale = Scale("quick", 3, work) if asked.quick else Scale("full", 5, work)
    figures = [
        figure
        for peer in (peer_ccusage, peer_stores, peer_agentsview)
        for figure in peer.measure(scale, peers)
    ]
    print(report.table(figures))
    report.write(asked.json, scale, figures)
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
