"""Results and the table of them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

PASSED, FAILED, MISSING, NOT_APPLICABLE = "passed", "failed", "missing", "not applicable"
CELLS = {PASSED: "ok", FAILED: "FAILED", NOT_APPLICABLE: "-", MISSING: "skipped"}

OTHER_TRANSPORT = "was not asked over the transport that this is about"


@dataclass(frozen=True)
class Result:
    """How one scenario went with one client; scenario ``*`` is all of them."""

    client: str
    transport: str
    scenario: str
    outcome: str
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields by name."""
        return asdict(self)


def cell(results: list[Result]) -> str:
    """Sum up one scenario with one client over all transports."""
    outcomes = {result.outcome for result in results}
    for worst in (FAILED, MISSING, PASSED, NOT_APPLICABLE):
        if worst in outcomes:
            failed = [r.transport for r in results if r.outcome == FAILED]
            return CELLS[worst] + (f" {'+'.join(failed)}" if failed and worst == FAILED else "")
    return ""


def print_table(results: list[Result], clients: list[str]) -> None:
    """Print scenario by client, and below it what failed or was left out."""
    scenarios = list(dict.fromkeys(r.scenario for r in results if r.scenario != "*"))
    width = max(map(len, scenarios), default=8)
    print(" ".join([f"{'scenario':<{width}}", *(f"{name:>12}" for name in clients)]))
    for scenario in scenarios:
        cells = [
            cell([r for r in results if r.client == name and r.scenario in {scenario, "*"}])
            for name in clients
        ]
        print(" ".join([f"{scenario:<{width}}", *(f"{text:>12}" for text in cells)]))
    for result in results:
        if result.outcome in {FAILED, MISSING}:
            where = f"{result.client} over {result.transport}, {result.scenario}"
            print(f"{result.outcome}: {where}: {result.detail}")
    for line in legend(results):
        print(line)


def legend(results: list[Result]) -> list[str]:
    """Tell why a cell is ``-``, one line for each reason."""
    clients: dict[str, dict[str, None]] = {}
    for scenario, name in dict.fromkeys((r.scenario, r.client) for r in results):
        here = [r for r in results if (r.scenario, r.client) == (scenario, name)]
        if cell(here) == CELLS[NOT_APPLICABLE]:
            clients.setdefault(here[0].detail or OTHER_TRANSPORT, {})[name] = None
    return [f"-: {', '.join(names)} {reason}" for reason, names in clients.items()]


def summary(results: list[Result]) -> str:
    """Count outcomes; what does not apply to a client is not counted."""
    counts = {name: sum(r.outcome == name for r in results) for name in CELLS}
    return f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[MISSING]} skipped"


def missing_outcome() -> str:
    """Say what a missing toolchain is: a failure in CI, a named skip elsewhere."""
    return FAILED if os.environ.get("CI") else MISSING
