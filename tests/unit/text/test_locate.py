from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text.index_form import BARRIER, compose, index_text
from flue_grpc.text.locate import chunks
from flue_grpc.text.tokenizer import tokens

from .test_index_form import MIXED

COMBINING = st.text(
    "ae\u0301\u0308가\u1100\u1161\u11a8\uffa1\uffc2ｶﾞか\u3099 日。\ufe0f", max_size=16
)


def new_tokens(text, overlap):
    for chunk in chunks(text, overlap):
        for number in range(chunk.repeated, len(chunk.tokens)):
            yield chunk, number


def located(text):
    """Return each token once, with its span."""
    return [
        (*chunk.place(number, number), chunk.tokens[number][2])
        for chunk, number in new_tokens(text, 1)
    ]


def located_tokens(text, overlap=1):
    return [chunk.tokens[number][2] for chunk, number in new_tokens(text, overlap)]


def test_places_are_those_of_the_text_as_it_is():
    text = "Cafe\u0301 用ＳＱＬ锁。ｶﾞ 😀x"
    assert [(text[start:end], token) for start, end, token in located(text)] == [
        ("Cafe\u0301", "cafe"),
        ("用", "用"),
        ("ＳＱＬ", "sql"),
        ("锁", "锁"),
        ("。", BARRIER),
        ("ｶﾞ", "ガ"),
        ("x", "x"),
    ]


@given(MIXED | COMBINING)
@settings(max_examples=60, deadline=None)
def test_located_tokens_are_the_tokens_of_the_index(text):
    assert located_tokens(text) == tokens(index_text(text))


@given(MIXED | COMBINING)
@settings(max_examples=60, deadline=None)
def test_places_ascend_and_hold_their_token(text):
    last, text = 0, compose(text.replace(BARRIER, ""))
    for start, end, token in located(text):
        assert last <= start < end <= len(text)
        last = start
        assert token == BARRIER or token in tokens_of(text[start:end])


def tokens_of(piece):
    """A mark is no token on its own, so it is given something to stand on, too."""
    return tokens(index_text(piece)) + tokens(index_text(f"ん{piece}"))


@given(st.lists(MIXED | COMBINING, min_size=1, max_size=4), st.integers(8000, 9000))
@settings(max_examples=8, deadline=None)
def test_chunks_do_not_show(texts, lead):
    text = "x" * lead + " ".join(texts) + " 日。" + "é" * 9000 + " 本 \u3002" + "語" * 9000
    for overlap in (1, 3):
        assert located_tokens(text, overlap) == tokens(index_text(text))


def test_chunks_repeat_the_last_tokens():
    text = " ".join(map(str, range(4000)))
    first, second = list(chunks(text, 5))[:2]
    assert first.repeated == 0
    assert second.repeated == 5
    assert [token for _, _, token in second.tokens[:5]] == [t for _, _, t in first.tokens[-5:]]


def test_a_barrier_across_chunks_is_kept():
    text = "é" * 8190 + " 日。" + " " * 900 + "、本"
    assert located_tokens(text)[1:] == ["日", BARRIER, "本"]


def test_a_barrier_is_never_the_first_to_be_repeated():
    text = "x" * 8188 + " 日。本 語語"
    for overlap in (1, 2, 3):
        assert located_tokens(text, overlap)[1:] == ["日", BARRIER, "本", "語", "語"]


def test_a_part_without_tokens_is_passed_once():
    text = "x " + "、 " * 50_000 + "y"
    assert located(text) == [(0, 1, "x"), (100_002, 100_003, "y")]


def test_a_text_without_white_space_is_cut_between_characters_that_do_not_compose():
    assert located_tokens("か\u3099" * 33_000) == ["が"] * 33_000


def test_a_caller_that_stops_pays_for_the_beginning_only():
    first = next(chunks("needle " + "日本語。" * 1_000_000, 1))
    assert first.tokens[0][2] == "needle"
    assert len(first.tokens) < 100_000
