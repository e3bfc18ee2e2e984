from __future__ import annotations

import pytest

from tests.unit.agentindex.talks import Desk


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.close()
