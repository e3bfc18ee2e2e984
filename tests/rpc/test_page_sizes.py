"""The largest pages that a transcript can make, as they go over the wire."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc import limits
from flue_grpc.agentindex import pages
from flue_grpc.cancel import NEVER
from flue_grpc.rpc.convert_agentindex import fill_page
from tests.unit.agentindex.notes import Notes, located, note

CLIENT_BYTES = 4 * limits.MIB  # what a client receives by default


class Labelled(Notes):
    """Notes with the longest labels and the largest numbers."""

    def messages(self, line, offset, context):
        messages, then = super().messages(line, offset, context)
        label = "é" * 500
        times = {"ts": 253_402_300_799_999_999, "offset": 2**62 + offset}
        flags = {"is_error": True, "sidechain": True}
        labels = {"model": label, "tool_name": label, "call_id": label}
        return [replace(message, **times, **flags, **labels) for message in messages], then


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "n.jsonl"

    def write(*lines):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return located(path, adapter=Labelled())

    return write


def size(page):
    message = pb.Page()
    fill_page(message, page)
    return message.ByteSize()


@pytest.mark.parametrize("text", ["x" * 20_000, "x" * 3200, "x"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_is_below_4_mib_even_when_one_line_fills_it(write, text, direction):
    found = write(note(*[text] * limits.LINE_MESSAGES))
    page = pages.read_page(found, None, direction, 1, "", NEVER)
    assert len(page.messages) == limits.LINE_MESSAGES
    assert size(page) < CLIENT_BYTES


@pytest.mark.parametrize("count", [1, 20])
def test_a_page_of_200_messages_is_below_4_mib(write, count):
    # A byte that is no UTF-8 becomes three, so texts can be larger than their file.
    line = note(*["?" * 5461] * count).replace(b"?", b"\xff")
    found = write(*[line] * (400 // count))
    page = pages.read_page(found, None, "forward", limits.PAGE_MAX, "", NEVER)
    assert sum(message.text_size for message in page.messages) > 2 * limits.MIB
    assert size(page) < CLIENT_BYTES


@pytest.mark.parametrize("text", ["", "x" * 100, "x" * 20_000])
def test_a_response_of_a_stream_is_below_1_mib_unless_one_line_is_larger(write, text):
    found = write(*[note(text)] * 3000)
    for page in pages.read_transcript(found, None, "forward", 0, "", NEVER):
        assert size(page) < limits.BATCH_MAX_BYTES
