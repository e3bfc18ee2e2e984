from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.observability.trace_context import TraceContext, parse_traceparent, trace_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
KNOWN = TraceContext(TRACE, SPAN, sampled=True)


@pytest.mark.parametrize(
    ("value", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_a_traceparent_is_read(value, sampled):
    assert parse_traceparent(value) == TraceContext(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "value",
    [
        "",
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01.later",
    ],
)
def test_one_of_bad_form_is_none(value):
    assert parse_traceparent(value) is None


@settings(max_examples=100)
@given(st.text(max_size=80))
def test_nothing_that_a_client_sends_fails(value):
    parse_traceparent(value)


def test_the_trace_of_a_call_is_its_only_traceparent():
    entry = ("traceparent", f"00-{TRACE}-{SPAN}-01")
    assert trace_of([("user-agent", "x"), entry]) == KNOWN
    assert trace_of([entry, entry]) is None
    assert trace_of([("traceparent", entry[1].encode())]) is None
    assert trace_of([]) is None
