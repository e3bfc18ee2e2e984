"""Run the conformance scenarios with every client and print scenario by client.

A client whose toolchain is missing is left out by name; with CI=true that fails.
"""

from __future__ import annotations

import argparse
import json
import sys

from clients import CLIENTS, MissingToolchainError, run_client
from servers import SCENARIOS, TRANSPORTS, running_server
from table import FAILED, Result, missing_outcome, print_table, summary


def run_one(name: str, transport: str, files: list[str]) -> list[Result]:
    """Run every scenario with one client over one transport, against a server of its own."""
    client = CLIENTS[name]
    try:
        command = client.prepare()
    except MissingToolchainError as error:
        return [Result(name, transport, "*", missing_outcome(), str(error))]
    with running_server(transport) as server:
        results = list(run_client(name, command, server, files))
        if any(result.outcome == FAILED for result in results):
            sys.stderr.write(server.faults())
    return results


def main() -> int:
    """Run what was asked for; 0 when nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=CLIENTS, help="default: every one")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="default: both")
    parser.add_argument("--file", action="append", help="a file of scenarios (default: all)")
    parser.add_argument("--build", action="store_true", help="build the clients, run nothing")
    parser.add_argument("--json", action="store_true", help="one line for each result")
    options = parser.parse_args()
    if options.build:
        for name in options.client or CLIENTS:
            CLIENTS[name].prepare()
        return 0
    files = options.file or sorted(map(str, SCENARIOS.glob("*.json")))
    results = [
        result
        for name in options.client or CLIENTS
        for transport in options.transport or TRANSPORTS
        for result in run_one(name, transport, files)
    ]
    if options.json:
        for result in results:
            print(json.dumps(result.as_dict()))
    else:
        print_table(results, options.client or list(CLIENTS))
        print(summary(results))
    return int(any(result.outcome == FAILED for result in results))


if __name__ == "__main__":
    sys.exit(main())
