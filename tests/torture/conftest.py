"""How often to kill: ``FLUE_KILLS`` servers, indexes half as often, commands a tenth or less."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.torture.nursery import Nursery


@pytest.fixture(scope="session")
def kills():
    return int(os.environ.get("FLUE_KILLS", "200"))


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
