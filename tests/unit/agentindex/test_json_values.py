from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.adapters._json_values import (
    ABSENT,
    compact_json,
    is_prose,
    is_string,
    items_of,
    members_of,
    text_of,
    text_or_json,
    time_of,
)
from flue_grpc.agentindex.adapters._pieces import result_text

NINE = 1_772_355_600_000_000  # 2026-03-01T09:00:00Z


def raw(data: bytes) -> msgspec.Raw:
    return msgspec.Raw(data)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-03-01T09:00:00Z", NINE),
        ("2026-03-01T09:00:00.123Z", NINE + 123_000),
        ("2026-03-01T09:00:00.123456789Z", NINE + 123_456),
        ("2026-03-01T09:00:00.1Z", NINE + 100_000),
        ("2026-03-01t09:00:00z", NINE),
        ("2026-03-01T10:30:00+01:30", NINE),
        ("2026-03-01T09:00:00", NINE),
        (" 2026-03-01 09:00:00 ", NINE),
        ("1772355600", NINE),
        (1_772_355_600, NINE),
        (1_772_355_600.25, NINE + 250_000),
        (1_772_355_600_000, NINE),
        (NINE, NINE),
        (0, 0),
        ("1970-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ],
)
def test_times_are_microseconds_in_utc(stamp, expected):
    assert time_of(stamp) == expected


@pytest.mark.parametrize(
    "stamp",
    [
        None,
        "",
        "yesterday",
        "2026-13-01T09:00:00Z",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59-01:00",
        "9" * 5000,
        -1,
        True,
        float("nan"),
        float("inf"),
        1e300,
        10**30,
    ],
)
def test_what_is_no_time_is_none(stamp):
    assert time_of(stamp) is None


@settings(max_examples=100)
@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 12, 31)))  # noqa: DTZ001
def test_every_time_survives(moment):
    stamp = time_of(moment.isoformat() + "Z")
    elapsed = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert stamp == (elapsed.days * 86400 + elapsed.seconds) * 10**6 + elapsed.microseconds


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{ "b" : 1.50e3, "a":[1, 2 ,{} ] }', '{"b":1.50e3,"a":[1,2,{}]}'),
        (b'{"n":12345678901234567890123,"z":-0.10}', '{"n":12345678901234567890123,"z":-0.10}'),
        (b'{"t":"\\u003ca\\u003e \\u0026 \\u00e9 \\/"}', '{"t":"<a> & \u00e9 /"}'),
        (b'{"t":"\\ud83d\\ude00"}', '{"t":"\U0001f600"}'),
        (b'{"t":"\\ud83d"}', '{"t":"\ufffd"}'),
        (b'{"t":"\\u0022\\u005c\\u000a\\u0009\\u001B\\u0000"}', r'{"t":"\"\\\n\t\u001b\u0000"}'),
        (b'{"t":"\\\\u00e9"}', r'{"t":"\\u00e9"}'),
        (b'{"t":"a\xffb"}', '{"t":"a\ufffdb"}'),
        (b"null", "null"),
        (b"", ""),
    ],
)
def test_compact_json_keeps_order_and_digits_and_drops_needless_escapes(data, expected):
    assert compact_json(raw(data)) == expected


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner)
        ),
        max_leaves=8,
    ),
    st.booleans(),
)
def test_compact_json_is_what_a_json_writer_would_write(value, escaped):
    data = json.dumps(value, ensure_ascii=escaped, indent=1).encode()
    assert compact_json(raw(data)) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"a\\nb"', "a\nb"),
        (b'"a\\u0000b"', "a\ufffdb"),
        (b'"a\xff"', "a\ufffd"),
        (b'""', ""),
        (b"5", ""),
        (b"null", ""),
        (b"", ""),
    ],
)
def test_text_of_is_total(data, expected):
    assert text_of(raw(data)) == expected


def test_kinds_of_values_are_told_apart():
    assert (is_string(raw(b'""')), is_prose(raw(b'""'))) == (True, False)
    assert (is_string(raw(b'"a"')), is_prose(raw(b'"a"'))) == (True, True)
    assert not is_string(ABSENT)
    assert items_of(raw(b"{}")) is None
    assert [bytes(item) for item in items_of(raw(b"[1,[2]]"))] == [b"1", b"[2]"]
    assert members_of(raw(b"[]"), ("a",)) is None
    assert members_of(ABSENT, ("a",)) is None
    members = members_of(raw(b'{"a":1,"x":0,"a":2,"\xff":1,"\\u0062":null}'), ("a", "b", "c"))
    assert {name: bytes(value) for name, value in members.items()} == {"a": b"2", "b": b"null"}
    assert text_or_json(raw(b'"raw \\"text\\""')) == 'raw "text"'
    assert text_or_json(raw(b'{"a": 1}')) == '{"a":1}'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"out"', "out"),
        (b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]', "a\nb"),
        (b'[{"type":"text","text":"a"},{"type":"image","source":{}}]', "a\n[image]"),
        (
            b'[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"x"}]',
            "a\n[image]",
        ),
        (b'[{"type":"tool_reference","tool_name":"x"}]', "[tool_reference]"),
        (b'["a",null,5,{"type":"text"},{}]', "a"),
        (b'[{"type":5,"text":"a"}]', "a"),
        (b"[]", ""),
        (b"", ""),
        (b"null", ""),
        (b"5", "5"),
        (b'{"b": 1, "a": [2]}', '{"b":1,"a":[2]}'),
    ],
)
def test_output_of_a_tool_is_its_texts_and_placeholders(data, expected):
    assert result_text(raw(data)) == expected
