from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue.store.v1 import store_pb2
from flue_grpc import limits
from flue_grpc.errors import CancelledError
from flue_grpc.rpc import convert_store
from flue_grpc.store import message_rows
from flue_grpc.store.tool_calls import decode_tool_calls, encode_tool_calls
from flue_grpc.store.values import MessageQuery, ToolCall
from flue_grpc.store.window_calls import first_calls

TEXTS = st.text(st.sampled_from('ab"\\{}[],:é数😀\0\n\x1b'), max_size=12)
CALLS = st.lists(
    st.builds(
        ToolCall,
        TEXTS,
        TEXTS,
        TEXTS,
        TEXTS,
        st.sampled_from(
            [(), (("x", "[1,2]"),), (("function.y", '"z"'), ("raw", "{}")), (("w", "not JSON"),)]
        ),
    ),
    min_size=1,
    max_size=4,
).map(tuple)


def read(column, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "WINDOW_CALLS_BYTES", size)
        return list(first_calls(column[: size + 1]))


@given(CALLS, st.data())
@settings(max_examples=100, deadline=None)
def test_the_calls_of_a_cut_column_are_the_first_and_the_last_is_cut(calls, data):
    column = encode_tool_calls(calls).encode()
    found = read(column, data.draw(st.integers(0, len(column) - 2)))
    assert found[:-1] == list(decode_tool_calls(column.decode()))[: max(0, len(found) - 1)]
    if found:
        part, whole = found[-1], decode_tool_calls(column.decode())[len(found) - 1]
        assert whole.id.startswith(part.id)
        assert whole.type.startswith(part.type)
        assert whole.name.startswith(part.name)
        assert whole.arguments.startswith(part.arguments)


@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_a_column_that_is_not_cut_is_read_whole(calls):
    column = encode_tool_calls(calls)
    assert read(column.encode(), len(column.encode())) == list(decode_tool_calls(column))


@pytest.mark.parametrize("text", ["a" * 300, "é\0" * 100, "😀" * 100, '"\\' * 100])
def test_long_arguments_are_read_as_far_as_they_go(text):
    column = encode_tool_calls((ToolCall("c", "function", "f", text),)).encode()
    for size in range(120, 160):
        (call,) = read(column, size)
        assert (call.id, call.name) == ("c", "f")
        assert text.startswith(call.arguments)
        assert len(call.arguments) >= (size - 80) // 12


@pytest.mark.parametrize(
    "column",
    [
        b"x" * 200,
        b"[" * 200_000,
        b"[" + b"1" * 5000,
        b"[[[]],[" + b"{}," * 99,
        b'"' + b"a" * 200,
        b"{" * 200,
        b"[{" + b'"a":{' * 50_000,
    ],
)
def test_no_column_fails(column):
    assert all(isinstance(call, ToolCall) for call in read(column, 100))
    assert all(isinstance(call, ToolCall) for call in read(column, len(column) - 1))


def size_of(message):
    target = store_pb2.Message()
    convert_store.fill_message(target, message)
    return target.ByteSize()


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_calls": (ToolCall("", "", "", ""),) * 100_000},
        {"tool_calls": (ToolCall("\0" * 8, "", "", "\x1b" * 9),) * 5000},
        {"tool_calls": (ToolCall("", "", "", "", (("x", "1"),)),) * 9000},
        {"tool_calls": (ToolCall("c", "function", "f", "\0" * 2_000_000),) * 2},
        {"images": ("",) * 100_000},
        {"name": "n" * 20_000, "provider": "é" * 20_000, "tool_call_id": "i" * 70_000},
    ],
    ids=["empty calls", "short calls", "extra", "long arguments", "images", "texts"],
)
def test_a_window_message_is_bounded_on_the_wire(store, say, items, fields):
    say("needle")
    say("", "assistant", **fields)
    (result,) = items(store.search_messages(MessageQuery("needle")))
    message = result.window[1]
    assert message.truncated
    assert not result.window[0].truncated
    assert len(message.tool_calls) <= 1024
    # Ids, the time and the tags of the texts are not counted.
    assert size_of(message) < limits.WINDOW_MESSAGE_BYTES + 1024


def test_calls_are_kept_up_to_their_bound(store, say, items):
    calls = tuple(ToolCall(f"c{number}", "function", "f", "{}") for number in range(500))
    say("needle", tool_calls=calls)
    (result,) = items(store.search_messages(MessageQuery("needle")))
    assert result.window[0].tool_calls == calls
    assert not result.window[0].truncated


def test_a_message_in_many_windows_is_read_once(store, say, items, monkeypatch):
    for number in range(9):
        say(f"needle {number}", tool_calls=(ToolCall("c", "", "", ""),) * 10)
    made = []
    whole = message_rows.window_message
    monkeypatch.setattr(
        message_rows, "window_message", lambda row: made.append(row[0]) or whole(row)
    )
    results = items(store.search_messages(MessageQuery("needle", window=20)))
    assert [len(result.window) for result in results] == [9] * 9
    assert sorted(made) == list(range(1, 10))


class Cancelled:
    """Calls the work off once so many messages of windows were read."""

    def __init__(self, made, count) -> None:
        self.made, self.count = made, count

    def is_cancelled(self):
        return False

    def check(self):
        if len(self.made) >= self.count:
            raise CancelledError("enough")


def test_reading_windows_ends_when_nobody_waits(store, say, items, monkeypatch):
    for number in range(9):
        say(f"needle {number}")
    made = []
    whole = message_rows.window_message
    monkeypatch.setattr(
        message_rows, "window_message", lambda row: made.append(row[0]) or whole(row)
    )
    with pytest.raises(CancelledError):
        items(store.search_messages(MessageQuery("needle"), cancel=Cancelled(made, 3)))
    assert len(made) == 3


LIMIT_TEXTS = ("content", "provider", "name", "tool_call_id")


@pytest.mark.parametrize("field", LIMIT_TEXTS)
def test_every_text_of_a_message_counts_in_a_batch(store, say, items, monkeypatch, field):
    say(**{"content": "x", field: "y" * 600})
    counted = []
    size = message_rows.row_size
    monkeypatch.setattr(message_rows, "row_size", lambda row: counted.append(size(row)) or 0)
    assert len(items(store.list_messages("s1"))) == 1
    assert counted in ([600], [601])


def test_images_that_are_left_out_count_too(say):
    message = say("x", images=("a" * 50,) * 300)
    row = (*msgspec.structs.astuple(message)[:5], "", "", "", 0, 300)
    assert message_rows.row_size(row) == 1 + 2 * 300
