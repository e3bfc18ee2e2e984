"""Run the scenarios with Python: grpcio, or a command line tool by reflection.

Prints one line of JSON for each scenario.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from expect import MismatchError
from steps import Runner
from tools import BufCurl, Grpcurl, ToolCaller
from wire import GrpcioCaller

CALLERS = {
    "grpcio": GrpcioCaller,
    "grpcurl": lambda options: ToolCaller(Grpcurl(options)),
    "buf": lambda options: ToolCaller(BufCurl(options)),
}


def run_scenario(options: argparse.Namespace, scenario: dict[str, Any]) -> dict[str, str]:
    """Do the steps of one scenario and say how it went."""
    name = scenario["name"]
    caller = CALLERS[options.caller](options)
    if options.transport not in scenario.get("transports", [options.transport]):
        return {"scenario": name, "outcome": "not applicable"}
    if obstacle := caller.obstacle(scenario["steps"]):
        return {"scenario": name, "outcome": "not applicable", "detail": obstacle}
    runner = Runner(caller, options.token, Path(options.home), f"{options.run}-{name}")
    try:
        runner.steps(scenario["steps"])
    except MismatchError as error:
        return {"scenario": name, "outcome": "failed", "detail": str(error)}
    finally:
        caller.close()
    return {"scenario": name, "outcome": "passed"}


def main() -> None:
    """Read the options, run every scenario of every file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--caller", choices=CALLERS, default="grpcio")
    for name in ("address", "token", "ca", "home", "run", "command"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--transport", choices=("unix", "tcp"), default="unix")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    for file in options.files:
        for scenario in json.loads(file.read_text("utf-8")):
            print(json.dumps(run_scenario(options, scenario)), flush=True)


if __name__ == "__main__":
    main()
