"""How often to kill: ``FLUE_KILLS`` servers, indexes half as often, commands a tenth or less."""

from __future__ import annotations

import os
import shutil
import sys
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
    if (log := path / "log").exists():
        sys.stderr.write(log.read_text()[-4000:])  # shown when the test has failed
    shutil.rmtree(path)


@pytest.fixture
def nursery(directory):
    with closing(Nursery(directory / "log")) as made:
        yield made
