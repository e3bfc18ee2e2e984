"""Waiting for what another thread or process brings about."""

from __future__ import annotations

import time

PATIENCE = 60.0  # ends a test that would wait for ever, and decides no other
PAUSE = 0.002


def wait_until(condition, seconds=PATIENCE, tell=lambda: "the condition never came true"):
    """Return what ``condition`` gives when it is true at last; ``tell`` says what was there."""
    end = time.monotonic() + seconds
    while not (given := condition()):
        assert time.monotonic() < end, tell()
        time.sleep(PAUSE)
    return given
