from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.adapters.base import LineUsage
from flue_grpc.agentindex.usage_blocks import INT64_MAX, integers, load, pack, unpack
from flue_grpc.agentindex.values import TokenUsage

NUMBERS = st.one_of(
    st.just(0),
    st.integers(-128, 127),
    st.integers(-(2**31), 2**31),
    st.integers(-INT64_MAX, INT64_MAX),
)
LINES = st.builds(
    LineUsage,
    ts=st.none() | st.integers(0, 2**57),
    model=st.sampled_from(["", "m", "models are text"]),
    tokens=st.builds(TokenUsage, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    cost_usd=st.none() | st.floats(0, 1e300),
    message_count=st.integers(-1000, 1000),
)


@given(st.lists(LINES, min_size=1, max_size=30))
@example([LineUsage(None, "", TokenUsage())])
@example([LineUsage(0, "m", TokenUsage(1), 0.0, 1)])
@settings(max_examples=100)
def test_what_was_packed_is_unpacked(lines):
    block = load(pack(lines))
    assert unpack(block) == lines
    times = [line.ts for line in lines if line.ts is not None]
    assert (block.first, block.last) == (min(times, default=None), max(times, default=None))
    assert (block.rows, block.timeless) == (len(lines), len(lines) - len(times))
    assert list(block.models) == list(dict.fromkeys(line.model for line in lines))
    sums = [
        [line.tokens.input for line in lines],
        [line.tokens.output for line in lines],
        [line.tokens.cache_read for line in lines],
        [line.tokens.cache_write for line in lines],
        [line.message_count for line in lines],
    ]
    assert list(block.sums) == [max(-INT64_MAX, min(sum(column), INT64_MAX)) for column in sums]


def test_columns_are_as_narrow_as_their_numbers():
    tokens = TokenUsage(100, 1000, 100_000, 0)
    block = load(pack([LineUsage(10**15, "m", tokens, None, 1)] * 256))
    assert [len(column) for column in block.buckets] == [257, 513, 1025, 0]
    assert (len(block.counts), block.costs, block.model_indexes) == (257, b"", b"")
    assert list(integers(b"", 2)) == [0, 0]


def test_numbers_beyond_64_bits_are_held_at_the_limit():
    block = load(pack([LineUsage(None, "", TokenUsage(2**70, -(2**70)))]))
    assert unpack(block)[0].tokens == TokenUsage(INT64_MAX, -INT64_MAX)
