from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text.index_form import BARRIER, index_text
from flue_grpc.text.locate import Located, located_tokens
from flue_grpc.text.tokenizer import tokens

from .test_index_form import MIXED

COMBINING = st.text(
    "ae\u0301\u0308가\u1100\u1161\u11a8\uffa1\uffc2ｶﾞか\u3099 日。\ufe0f", max_size=16
)


def shown(text):
    return [(text[token.start : token.end], token.token) for token in located_tokens(text)]


def test_places_are_those_of_the_text_as_it_is():
    text = "Cafe\u0301 用ＳＱＬ锁。ｶﾞ 😀x"
    assert shown(text) == [
        ("Cafe\u0301", "cafe"),
        ("用", "用"),
        ("ＳＱＬ", "sql"),
        ("锁", "锁"),
        ("", BARRIER),
        ("ｶﾞ", "ガ"),
        ("x", "x"),
    ]


@given(MIXED | COMBINING)
@settings(max_examples=60, deadline=None)
def test_located_tokens_are_the_tokens_of_the_index(text):
    assert [located.token for located in located_tokens(text)] == tokens(index_text(text))


@given(MIXED | COMBINING)
@settings(max_examples=60, deadline=None)
def test_places_ascend_and_hold_their_token(text):
    last = 0
    for located in located_tokens(text):
        assert last <= located.start <= located.end <= len(text)
        last = located.start
        piece = text[located.start : located.end]
        # A mark is no token on its own, so it is given something to stand on.
        assert piece == "" if located.token == BARRIER else located.token in tokens_of(piece)


def tokens_of(piece):
    return tokens(index_text(piece)) + tokens(index_text(f"ん{piece}"))


@given(st.lists(MIXED | COMBINING, min_size=1, max_size=4), st.integers(8000, 9000))
@settings(max_examples=30, deadline=None)
def test_chunks_do_not_show(texts, lead):
    text = "x" * lead + " ".join(texts) + " 日。" + "é" * 9000 + " 本 \u3002" + "語" * 9000
    assert [located.token for located in located_tokens(text)] == tokens(index_text(text))


def test_a_barrier_across_chunks_is_kept():
    text = "é" * 8190 + " 日。" + " " * 9000 + "、本"
    assert [located.token for located in located_tokens(text)][1:] == ["日", BARRIER, "本"]


def test_a_text_without_white_space_is_cut_between_characters_that_do_not_compose():
    text = "か\u3099" * 70_000
    assert [located.token for located in located_tokens(text)] == ["が"] * 70_000


def test_a_caller_that_stops_pays_for_the_beginning_only():
    first = next(located_tokens("needle " + "日本語。" * 1_000_000))
    assert first == Located("needle", 0, 6)
