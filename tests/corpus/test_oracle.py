"""Every summary and every message of every real transcript, against a second reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.oracle import objects_of
from tests.corpus.second_reading import expected_of, fields_of, read, said_of

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*/*.jsonl"))
pytestmark = pytest.mark.skipif(not FILES, reason="no corpus beside the repository")

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
GROWN = [
    ("claude/04-2.1.62-earlier.jsonl", "claude/03-2.1.62.jsonl"),
    ("codex/04-0.63.0-earlier.jsonl", "codex/03-0.63.0.jsonl"),
]
GLUED = ["claude/07-2.1.12.jsonl", "pi/01-v1.jsonl", "pi/02-v1.jsonl"]


def read_file(path, data=None):
    return read(path.parent.name, path.read_bytes() if data is None else data, path.name)


@each_file
def test_the_summary_is_what_a_second_reading_says(path):
    reading = read_file(path)
    expected = expected_of(path.parent.name, reading.data, reading.source)
    if expected is None:
        assert reading.summary is None
        return
    assert fields_of(reading.summary) == expected[0]
    assert reading.summary.tool == path.parent.name


@each_file
def test_the_messages_are_what_a_second_reading_says(path):
    reading = read_file(path)
    expected = expected_of(path.parent.name, reading.data, reading.source)
    found = list(map(said_of, reading.messages)) if expected else []
    said = expected[1] if expected else []
    assert [(one, other) for one, other in zip(found, said, strict=False) if one != other] == []
    assert len(found) == len(said)


@each_file
def test_the_lines_of_the_usage_sum_up_to_the_summary(path):
    reading = read_file(path)
    reading.check_laws()
    assert all(min(added) >= 0 for added in reading.added)
    assert all(usage.message_count >= 0 for usage in reading.usage)


@each_file
def test_a_file_fed_in_two_steps_is_a_file_fed_at_once(path):
    whole = read_file(path)
    cut = whole.data.rfind(b"\n", 0, len(whole.data) // 2) + 1
    steps = read(path.parent.name, whole.data[:cut], path.name)
    steps.source = whole.source
    steps.store()
    steps.feed(whole.data[cut:])
    assert steps.summary == whole.summary
    assert steps.usage == whole.usage
    assert steps.ledger.entries == whole.ledger.entries


@pytest.mark.parametrize(("earlier", "later"), GROWN)
def test_a_file_that_grew_reads_as_one_read_at_once(earlier, later):
    whole, grown = read_file(CORPUS / later), read_file(CORPUS / earlier)
    assert whole.data.startswith(grown.data)
    assert grown.data.endswith(b"\n")
    assert grown.summary != whole.summary
    grown.store()
    grown.feed(whole.data[len(grown.data) :])
    assert grown.summary == whole.summary
    assert grown.usage == whole.usage


@pytest.mark.parametrize("name", GLUED)
def test_objects_glued_on_one_line_lose_nothing(name):
    together = read_file(CORPUS / name)
    glued = [line for line in together.data.split(b"\n") if len(objects_of(line)) > 1]
    assert glued
    apart = together.data
    for line in glued:
        apart = apart.replace(line, line.replace(b"}{", b"}\n{"))
    divided = read_file(CORPUS / name, apart)
    assert fields_of(together.summary) == fields_of(divided.summary)
    assert together.usage == divided.usage
    assert together.texts == divided.texts
