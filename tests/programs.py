"""The command line as a program of its own."""

from __future__ import annotations

import subprocess
import sys


def run(*arguments, **options):
    """Run it to its end, and keep what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "flue_grpc", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )
