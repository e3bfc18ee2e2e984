"""How often to kill: ``FLUE_KILLS`` servers, indexes half as often, commands a tenth or less."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.torture.nursery import Nursery

KILLS = int(os.environ.get("FLUE_KILLS", "200"))
SECONDS_A_KILL = 6  # many times what one takes: it ends a test that hangs, and no other


def pytest_collection_modifyitems(items):
    """Give a test as much time as its kills may take, beyond the limit that all have."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(600 + SECONDS_A_KILL * KILLS))


@pytest.fixture(scope="session")
def kills():
    return KILLS


@pytest.fixture(scope="session")
def seed():
    return int(os.environ.get("FLUE_SEED", "1"))


@pytest.fixture
def directory():
    """A directory whose name leaves room for a socket's."""
    path = Path(tempfile.mkdtemp(prefix="flue-t"))
    yield path
    shutil.rmtree(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Show what the victims of a failed test have said."""
    report = yield
    directory = item.funcargs.get("directory")
    if report.failed and directory is not None and (directory / "log").exists():
        report.sections.append(("Log of the victims", (directory / "log").read_text()[-4000:]))
    return report


@pytest.fixture
def nursery(directory):
    with closing(Nursery(directory / "log")) as made:
        yield made
