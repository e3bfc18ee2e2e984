"""A server that runs as its users run it."""

from __future__ import annotations

import pytest

from tests.wire.security import process


@pytest.fixture(name="running")
def running_fixture():
    return process.running


@pytest.fixture(scope="module")
def product():
    """A server on a Unix socket that all tests of a module share."""
    with process.running() as started:
        yield started
