"""Every test that docs/security.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TEXT = (TESTS.parent / "docs" / "security.md").read_text()
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and "`" in line]
NAMED = sorted(set(re.findall(r"`([a-z_/]+/test_[\w/]+\.py(?:::\w+)?)`", TEXT)))


@pytest.mark.parametrize("name", NAMED)
def test_a_proof_that_is_named_exists(name):
    path, _, function = name.partition("::")
    assert re.search(rf"^def {function or 'test_'}", (TESTS / path).read_text(), re.MULTILINE)


def test_every_threat_has_a_proof():
    assert len(ROWS) > 40
    for row in ROWS:
        assert "/test_" in row.rsplit("|", 2)[1], row
