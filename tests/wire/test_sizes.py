"""No response of the AgentIndex needs more than the 4 MiB that clients take by default."""

from __future__ import annotations

import json

import pytest

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc import limits
from tests.wire import homes

CLIENT_BYTES = 4 << 20


def sizes(responses):
    return [response.ByteSize() for response in responses]


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    """Transcripts that are large in every way there is."""
    from tests.wire.conftest import Flue

    flue = Flue(tmp_path_factory.mktemp("f"))
    megabyte = "é\\" * (1 << 19)
    blocks = [{"type": "text", "text": "x" * 20_000} for _ in range(1200)]
    huge = json.loads(homes.reply_line(1, "x", 2))
    huge["message"]["content"] = blocks
    tools = json.loads(homes.reply_line(1, "x", 3))
    tools["message"]["model"] = "m" * 100_000
    tools["message"]["content"] = [
        {"type": "tool_use", "id": "i" * 5000, "name": "n" * 5000, "input": {"a": n}}
        for n in range(1000)
    ]
    homes.write_session(
        flue.home,
        1,
        [
            homes.user_line(1, megabyte),
            homes.reply_line(1, megabyte),
            json.dumps(huge) + "\n",
            json.dumps(tools) + "\n",
        ],
    )
    long = {"cwd": "/" + "d" * 200_000, "gitBranch": "b" * 200_000, "version": "v" * 200_000}
    for number in range(2, 40):
        homes.write_session(flue.home, number, [homes.user_line(number, megabyte, **long)])
    lines = [homes.user_line(40, "y" * 9000, second) for second in range(3000)]
    homes.write_session(flue.home, 40, lines)
    flue.start().swept()
    yield flue
    flue.stop()


def read(number, **fields):
    return {"tool": "claude", "id": homes.session_id(number)} | fields


@pytest.mark.parametrize("number", [1, 2, 40])
@pytest.mark.parametrize("direction", [ai.DIRECTION_FORWARD, ai.DIRECTION_BACKWARD])
@pytest.mark.parametrize("limit", [0, 200])
def test_pages_stay_below_it(product, number, direction, limit):
    page = product.index.ReadPage(
        ai.ReadPageRequest(**read(number, direction=direction, limit=limit))
    )
    assert 0 < page.ByteSize() < CLIENT_BYTES
    request = ai.ReadTranscriptRequest(**read(number, direction=direction))
    found = list(product.index.ReadTranscript(request))
    assert max(sizes(found)) < CLIENT_BYTES
    if number == 40:
        assert max(sizes(found)) <= limits.BATCH_MAX_BYTES
        assert sum(len(response.page.messages) for response in found) == 3000


def test_whole_messages_come_in_pieces_below_it(product):
    request = ai.ReadMessageRequest(**read(1))
    found = list(product.index.ReadMessage(request))
    assert max(sizes(found)) <= limits.BATCH_MAX_BYTES
    assert "".join(response.text for response in found) == "é\\" * (1 << 19)


def test_lists_stay_below_it(product):
    for responses in (
        product.index.Snapshot(ai.SnapshotRequest()),
        product.index.Usage(ai.UsageRequest(group_by=[1, 2, 3, 4, 5])),
    ):
        found = list(responses)
        assert max(sizes(found)) <= limits.BATCH_MAX_BYTES


def test_a_summary_stays_below_it(product):
    summary = product.index.Resolve(ai.ResolveRequest(**read(2))).summary
    assert summary.ByteSize() < limits.BATCH_MAX_BYTES


def test_what_the_store_sends_passes_one_mebibyte_only_with_one_message_in_it(product):
    product.store.CreateSession(st.CreateSessionRequest(id="large"))
    for size in (10, 400_000, 700_000, 2_000_000, 300_000, 300_000, 300_000, 10):
        message = st.Message(role="user", content="x" * size)
        request = st.AppendMessageRequest(session_id="large", message=message)
        product.store.AppendMessage(request)
    found = list(product.store.ListMessages(st.ListMessagesRequest(session_id="large")))
    assert sum(len(response.messages) for response in found) == 8
    for response in found:
        assert response.ByteSize() <= limits.BATCH_MAX_BYTES or len(response.messages) == 1
