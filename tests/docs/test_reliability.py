"""Every test that docs/reliability.md names exists, and every command names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"tests/[\w/]+\.py(?:::[\w:]+)?|tests/\w+(?:/\w+)*", TEXT)))
FOUND = TEXT.partition("## Found on the way\n")[2].partition("\n## ")[0].split("\n- ")[1:]
TABLES = re.findall(r"^\| (?:what|target) .*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", TESTS)
def test_what_is_named_exists(name):
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    if function:
        text = (ROOT / path).read_text()
        assert re.search(rf"^ *def {function.rpartition('::')[2]}\(", text, re.MULTILINE)


@pytest.mark.parametrize("fault", FOUND, ids=lambda fault: fault[:40])
def test_every_fault_that_was_found_names_its_test(fault):
    assert re.search(r"`tests/[\w/]+\.py::(?:\w+::)?test_\w+`", fault)


def test_every_row_of_figures_has_its_command():
    assert len(TABLES) == 2
    for table in TABLES:
        for row in table.splitlines():
            assert re.search(r"`(?:make|pytest) [^`]+` \|$", row), row


def test_every_selection_of_a_command_selects_something():
    selections = re.findall(r"`pytest (\S+) -k (\w+)", TEXT)
    assert len(selections) >= 2
    for path, words in selections:
        assert re.search(rf"^def test_\w*{words}", (ROOT / path).read_text(), re.MULTILINE)
