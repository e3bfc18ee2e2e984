"""What holds for every transcript, whatever is in it (behaviour B3, B4; formats §8.14)."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.adapters.base import Context, MemoryLedger
from flue_grpc.agentindex.lines import LineBlock, split_lines
from tests.unit.agentindex.reading import FACTS, Reading, feed_line

FIXTURES = {
    f"{path.parent.name}/{path.stem}": path.read_bytes()
    for path in sorted((Path(__file__).resolve().parents[2] / "fixtures").glob("*/*.jsonl"))
}
names = st.sampled_from(sorted(FIXTURES))


def reading_of(name: str, data: bytes | None = None) -> Reading:
    reading = Reading(name.partition("/")[0])
    reading.feed(FIXTURES[name] if data is None else data)
    return reading


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures_obey_the_laws(name):
    reading = reading_of(name)
    assert reading.summary.message_count > 0
    reading.check_laws()


@settings(max_examples=60, deadline=None)
@given(names, st.lists(st.integers(0, 6000), max_size=4))
def test_a_file_read_in_any_steps_is_a_file_read_at_once(name, cuts):
    data = FIXTURES[name]
    whole, steps = reading_of(name), reading_of(name, b"")
    read_to = 0
    for cut in [*sorted(cut % len(data) for cut in cuts), len(data)]:
        end = data.rfind(b"\n", 0, cut) + 1
        steps.feed(data[read_to:end])
        steps.store()
        # What lies behind the last newline is read on a copy, for the answer alone.
        answer = reading_of(name, data[:cut])
        copy = msgspec.msgpack.decode(
            msgspec.msgpack.encode(steps.state), type=steps.adapter.state_type
        )
        ledger = MemoryLedger()
        ledger.entries.update(steps.ledger.entries)
        feed_line(steps.adapter, copy, data[end:cut], ledger)
        assert steps.adapter.summary(copy, steps.source, FACTS) == answer.summary
        read_to = end
    assert steps.summary == whole.summary
    assert steps.usage == whole.usage
    assert steps.ledger.entries == whole.ledger.entries


@settings(max_examples=60, deadline=None)
@given(names, st.integers(0, 6000))
def test_a_partial_line_changes_nothing(name, cut):
    data = FIXTURES[name]
    lines = data.splitlines(keepends=True)
    partial = lines[cut % len(lines)][: cut % 97].rstrip(b"\n")[:-1]
    assert reading_of(name, data + partial).summary == reading_of(name).summary


@pytest.mark.parametrize("name", FIXTURES)
def test_views_into_a_buffer_that_is_used_again_are_read_like_bytes(name):
    reading = reading_of(name, b"")
    for line in split_lines(FIXTURES[name], 0):
        buffer = bytearray(line.data)
        with memoryview(buffer) as view:
            reading.usage += feed_line(reading.adapter, reading.state, view, reading.ledger)
        # Raises BufferError if the adapter still holds the view.
        buffer.clear()
    assert (reading.summary, reading.usage) == (reading_of(name).summary, reading_of(name).usage)


@settings(max_examples=60, deadline=None)
@given(names, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_lines_fed_in_blocks_are_lines_fed_one_by_one(name, sizes):
    single, blocks = reading_of(name, b""), reading_of(name, b"")
    lines = list(split_lines(FIXTURES[name], 0))
    usage, models, expected = [], [], []
    while lines:
        part, lines = lines[: sizes[0]], lines[sizes[0] :]
        sizes = [*sizes[1:], sizes[0]]
        start = part[0].offset
        data = FIXTURES[name][start : part[-1].end]
        ends = [line.offset + len(line.data) - start for line in part]
        taken = blocks.adapter.feed(
            blocks.state, LineBlock(memoryview(data), start, ends), blocks.ledger
        )
        usage += taken.usage
        models += [(start + end, model) for end, model in taken.models]
        for line in part:
            before = single.adapter.context(single.state).model
            single.usage += feed_line(single.adapter, single.state, line.data, single.ledger)
            after = single.adapter.context(single.state).model
            if after != before:
                expected.append((line.offset + len(line.data), after))
    assert (usage, blocks.state) == (single.usage, single.state)
    assert blocks.ledger.entries == single.ledger.entries
    assert models == expected


@pytest.mark.parametrize("name", FIXTURES)
def test_a_page_may_begin_at_any_line(name):
    reading = reading_of(name)
    contexts = reading_of(name, b"")
    mirror = reading.adapter.context(reading.state).mirror
    pages = []
    for line in split_lines(reading.data, 0):
        model = contexts.adapter.context(contexts.state).model
        pages += reading.adapter.messages(line.data, line.offset, Context(model, mirror))[0]
        feed_line(contexts.adapter, contexts.state, line.data, contexts.ledger)
    assert pages == reading.messages


@pytest.mark.parametrize("name", FIXTURES)
def test_the_size_of_a_message_is_that_of_its_text(name):
    for message in reading_of(name).messages:
        assert message.text_size == len(message.text.encode())
        assert not message.truncated
        assert "\0" not in message.text


@settings(max_examples=150, deadline=None)
@given(names, st.integers(0, 6000), st.binary(max_size=6), st.integers(0, 6))
def test_random_bytes_anywhere_fail_nothing(name, at, junk, size):
    data = FIXTURES[name]
    at %= len(data)
    reading = reading_of(name, data[:at] + junk + data[at + size :])
    reading.check_laws()
    reading.store()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["claude", "codex", "pi"]), st.binary(max_size=200))
def test_junk_is_read_as_nothing(tool, junk):
    reading = Reading(tool)
    reading.feed(junk)
    reading.check_laws()


@pytest.mark.parametrize("name", FIXTURES)
def test_a_state_is_small_whatever_the_lines_hold(name):
    reading = reading_of(name)
    for line in FIXTURES[name].split(b"\n"):
        for text in sorted(set(re.findall(rb'":"([^"\\]{3,})"', line))):
            reading.feed(line.replace(text, b"x" * 40_000) + b"\n")
    assert len(msgspec.msgpack.encode(reading.state)) < 30_000


def test_keys_of_a_ledger_are_signed_and_fit_a_column():
    usage = {"usage": {"output_tokens": 1, "output": 1}, "role": "assistant"}
    claude = [
        {"type": "assistant", "requestId": f"r{n}", "isSidechain": n > 40, "message": usage}
        for n in range(50)
    ]
    codex = [
        {
            "type": "token_usage_record",
            "payload": {"turn_id": f"t{n}", "turn_token_usage": usage["usage"]},
        }
        for n in range(50)
    ]
    pi = [{"type": "message", "id": f"e{n}", "message": usage} for n in range(50)]
    for tool, lines in {"claude": claude, "codex": codex, "pi": [{"type": "session"}, *pi]}.items():
        keys = Reading(tool, *lines).ledger.entries
        assert len(keys) >= 50
        assert -(2**63) <= min(keys) < 0 < max(keys) < 2**63
