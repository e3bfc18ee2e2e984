from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.store.images import decode_images, encode_images
from flue_grpc.store.tool_calls import decode_tool_calls, encode_tool_calls, normal
from flue_grpc.store.values import ToolCall

SHAPE = (
    '[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\\"cmd\\": \\"ls\\"}"}}]'
)


def test_the_column_has_the_shape_of_the_original():
    calls = (ToolCall("c1", "function", "bash", '{"cmd": "ls"}'),)
    assert encode_tool_calls(calls) == SHAPE
    assert decode_tool_calls(SHAPE) == calls


def test_no_calls_are_an_empty_text():
    assert encode_tool_calls(()) == ""
    assert decode_tool_calls("") == decode_tool_calls("null") == decode_tool_calls("[]") == ()


def test_other_members_stand_beside_the_known_ones_as_they_came():
    signature = '{"google":{"thought_signature":"Ab\\/C=="}, "n": 1.0e+00}'
    call = ToolCall(
        "", "", "f", "", (("extra_content", signature), ("function.strict", " true"[1:]))
    )
    column = encode_tool_calls((call,))
    assert f'"extra_content":{signature}' in column
    assert json.loads(column)[0]["function"]["strict"] is True
    assert decode_tool_calls(column) == (call,)


@pytest.mark.parametrize(
    "extra",
    [
        {"raw": "no JSON"},
        {"raw": ""},
        {"x": " 1"},
        {"x": "1\n"},
        {"x": '"\\ud800"'},
        {"x": "NaN"},
        {"x": "1 2"},
        {"x": "[" * 100_000},
        {"id": "1", "type": "2", "function": "3", "flue:extra": "4"},
        {"function.name": "1", "function.arguments": "2"},
        {"function.flue:extra": "{}", "function.": "1", "": "2"},
        {"a.b": "1", "function.function.name": "1", "\0": '"\\u0000"'},
        {"big": "123456789012345678901234567890.10", "dup": '{"a":1,"a":2}'},
    ],
)
def test_any_extra_comes_back_byte_for_byte(extra):
    call = ToolCall("i", "t", "n", "a", tuple(sorted(extra.items())))
    column = encode_tool_calls((call,))
    json.loads(column)
    assert decode_tool_calls(column) == (call,)


def within(frames, work):
    """Do the work that many frames further up the stack."""
    return work() if not frames else within(frames - 1, work)


@pytest.mark.parametrize("depth", [100, 590, 600, 900, 980, 990, 1500])
def test_nesting_is_read_back_whatever_the_depth_of_the_reader_s_stack(depth):
    call = ToolCall("i", "t", "n", "a", (("x", "[" * depth + "]" * depth),))
    column = encode_tool_calls((call,))
    for frames in (0, 50, 250):
        assert within(frames, lambda: decode_tool_calls(column)) == (call,)


def test_the_column_is_one_line_whatever_the_extra_members_hold():
    call = ToolCall("i", "t", "n", "a\nb", (("function.y", "[1,\n2]"), ("x", '{\n "k": 1}')))
    column = encode_tool_calls((call,))
    assert "\n" not in column
    assert decode_tool_calls(column) == (call,)


def test_members_of_wrong_types_are_kept_as_extra():
    column = '[{"id":5,"type":null,"function":{"name":["x"],"arguments":{"a":1}},"x":"y"}]'
    (call,) = decode_tool_calls(column)
    assert (call.id, call.type, call.name, call.arguments) == ("", "", "", "")
    assert dict(call.extra) == {
        "id": "5",
        "type": "null",
        "function.name": '["x"]',
        "function.arguments": '{"a":1}',
        "x": '"y"',
    }
    assert decode_tool_calls(encode_tool_calls((call,))) == (call,)


@pytest.mark.parametrize("function", ["null", "[]", '"f"', "1"])
def test_a_function_that_is_no_object_is_kept_as_extra(function):
    (call,) = decode_tool_calls(f'[{{"id":"a","type":"t","function":{function}}}]')
    assert call == ToolCall("a", "t", "", "", (("function", function),))


@pytest.mark.parametrize(
    "broken", ["{", "[", "{}", "5", "[5]", "[null]", '"x"', "[{}", "\0", "x" * 100, "[" * 100_000]
)
def test_a_broken_column_is_one_call_with_the_text(broken):
    calls = (ToolCall("", "", "", "", (("raw", broken),)),)
    assert decode_tool_calls(broken) == calls
    assert decode_tool_calls(encode_tool_calls(calls)) == calls


def test_extra_members_are_ordered_by_name_once_each():
    call = ToolCall("", "", "", "", (("b", "1"), ("a", "2"), ("b", "3")))
    assert normal(call).extra == (("a", "2"), ("b", "3"))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(value=values, indent=st.sampled_from((None, 1)), ascii_only=st.booleans())
def test_json_of_any_writer_stays_as_it_is(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    call = ToolCall("", "", "", "", (("x", text),))
    assert decode_tool_calls(encode_tool_calls((call,))) == (call,)


@settings(max_examples=50, deadline=None)
@given(column=values.map(json.dumps))
def test_any_json_column_is_readable(column):
    for call in decode_tool_calls(column):
        assert isinstance(call, ToolCall)


@pytest.mark.parametrize("images", [(), ("",), ("a", "data:\0", "ü数")])
def test_images_round_trip(images):
    assert decode_images(encode_images(images)) == images


@pytest.mark.parametrize("broken", ["x", "{", '{"a":1}', "[1]", '["a"', '"x"'])
def test_broken_images_are_one_with_the_text(broken):
    assert decode_images(broken) == (broken,)


@pytest.mark.parametrize("none", ["", "null", "[]"])
def test_no_images_are_none(none):
    assert decode_images(none) == ()
