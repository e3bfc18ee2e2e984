from __future__ import annotations

import base64
import string

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from flue_grpc.errors import BadPageTokenError
from flue_grpc.listing import Cursor
from flue_grpc.rpc.page_token import PageTokens
from flue_grpc.store.messages import MessageCursor
from flue_grpc.store.ranked import SearchCursor
from flue_grpc.store.sessions import SessionCursor

URL_SAFE = set(string.ascii_letters + string.digits + "-_")


class Place(Cursor, frozen=True):
    number: int
    name: str | None = None
    score: float = 0.0


class Other(Cursor, frozen=True):
    number: int
    name: str | None = None
    score: float = 0.0


REQUEST = store_pb2.ListMessagesRequest(session_id="ses_1", after_id=4, omit_images=True)
PLACE = Place(12, "née", -1.5e-6)


def refused(request, token, kind=Place) -> bool:
    with pytest.raises(BadPageTokenError):
        PageTokens(request).decode(token, kind)
    return True


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(max_size=50),
    st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=100)
def test_a_token_brings_its_cursor_back_and_is_url_safe(number, name, score):
    place = Place(number, name, score)
    token = PageTokens(REQUEST).encode(place)
    assert set(token) <= URL_SAFE
    assert PageTokens(REQUEST).decode(token, Place) == place


def test_the_empty_token_is_the_start_and_the_end():
    tokens = PageTokens(REQUEST)
    assert tokens.encode(None) == ""
    assert tokens.decode("", Place) is None


def test_a_token_does_not_depend_on_the_fields_that_may_change():
    token = PageTokens(REQUEST).encode(PLACE)
    later = store_pb2.ListMessagesRequest()
    later.CopyFrom(REQUEST)
    later.limit = 9
    later.follow = True
    later.page_token = token
    assert PageTokens(later).decode(token, Place) == PLACE
    search = agent_index_pb2.SearchRequest(query="q")
    token = PageTokens(search).encode(PLACE)
    search.max_bytes = 5
    assert PageTokens(search).decode(token, Place) == PLACE


@pytest.mark.parametrize(
    "change", [{"session_id": "ses_2"}, {"after_id": 5}, {"omit_images": False}]
)
def test_every_other_field_of_the_request_is_bound(change):
    token = PageTokens(REQUEST).encode(PLACE)
    changed = store_pb2.ListMessagesRequest(
        **{"session_id": "ses_1", "after_id": 4, "omit_images": True} | change
    )
    assert refused(changed, token)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"window": 0}, {}),
        ({"scope": 1}, {"scope": 2}),
        ({"query": "a"}, {"query": "b"}),
        ({"include_images": True}, {}),
    ],
)
def test_presence_and_enums_are_bound(first, second):
    token = PageTokens(store_pb2.SearchMessagesRequest(**first)).encode(PLACE)
    assert refused(store_pb2.SearchMessagesRequest(**second), token)


def test_a_token_belongs_to_one_rpc_and_one_kind_of_cursor():
    request = store_pb2.RecentMemoryRequest(scopes=["a"])
    token = PageTokens(request).encode(PLACE)
    assert refused(store_pb2.SearchMemoryRequest(scopes=["a"]), token)
    assert refused(request, token, Other)


def test_a_token_is_the_same_after_a_restart():
    """Spelt out, so that a change of the format is a decision."""
    token = PageTokens(REQUEST).encode(Place(12, "a", 0.5))
    assert token == PageTokens(REQUEST).encode(Place(12, "a", 0.5))
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert raw[0] == 1
    assert raw[9:] == msgspec.msgpack.encode([12, "a", 0.5])


def test_every_damage_of_one_character_is_noticed():
    token = PageTokens(REQUEST).encode(PLACE)
    for at in range(len(token)):
        for letter in ("A", "z", "_", "=", "+", "é", "\0"):
            damaged = token[:at] + letter + token[at + 1 :]
            if damaged != token:
                assert refused(REQUEST, damaged)
        assert refused(REQUEST, token[:at] or "A")
        assert refused(REQUEST, token + token[at])


@given(st.text(min_size=1, max_size=80) | st.binary(max_size=80).map(lambda b: b.hex() + "x"))
@settings(max_examples=200)
def test_anything_else_is_refused_in_words(token):
    assert refused(REQUEST, token)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode([2**63]),
        msgspec.msgpack.encode(["12"]),
        msgspec.msgpack.encode([1, "a", float("nan")]),
        msgspec.msgpack.encode([1, "a", float("inf")]),
        msgspec.msgpack.encode({"number": 1}),
        b"\x93\x01\xa2\xff\xff\x00",
        b"\x91" * 5000,
    ],
)
def test_a_forged_cursor_with_a_right_checksum_is_refused(payload):
    tokens = PageTokens(REQUEST)
    raw = b"\x01" + tokens._checksum(Place, payload) + payload
    token = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert refused(REQUEST, token)


def test_a_huge_token_is_refused_before_it_is_decoded():
    assert refused(REQUEST, "A" * 5_000_000)


def test_the_request_is_left_as_it_is():
    request = store_pb2.ListMessagesRequest(session_id="s", limit=3, follow=True, page_token="t")
    PageTokens(request)
    assert request == store_pb2.ListMessagesRequest(
        session_id="s", limit=3, follow=True, page_token="t"
    )


@pytest.mark.parametrize(
    ("kind", "earlier"),
    [
        (MessageCursor, (7,)),
        (SearchCursor, (100, 3, 7)),
        (SessionCursor, (20, 10, "s")),
    ],
)
def test_the_shorter_cursors_of_earlier_versions_are_read(kind, earlier):
    tokens = PageTokens(REQUEST)
    payload = msgspec.msgpack.encode(earlier)
    raw = b"\x01" + tokens._checksum(kind, payload) + payload
    token = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert tokens.decode(token, kind) == kind(*earlier)
