from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text.index_form import index_text
from flue_grpc.text.tokenizer import token_spans, tokens

from .fts import plain_tokens

MIXED = st.text(
    st.sampled_from(
        "aAéÉñßzK9_-'.,!+ \n\0" "Ддёй" "αΣ" "数据库々〇𠮷" "かガーｶﾞｱ〆" "한글가" "กินข้" "ＡＢ１！"
        "。、・「」\u3000\u200b\u200d" "😀🤖❤⚠₿" "\ufe0f\u0301\u3099\u0e34\U000e0100\ue000\ue001"
    ),
    max_size=24,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", ""),
        ("plain ASCII, as it is\0\x1b", "plain ASCII, as it is\0\x1b"),
        ("café — naïve", "café — naïve"),
        ("cafe\u0301", "café"),
        ("锁", " 锁 "),
        ("用Go写", " 用 Go 写 "),
        ("今日。本", " 今 日 \ue000 本 "),
        ("今日 本", " 今 日   本 "),
        ("ＡＢ", "AB"),
        ("🤖x❤️y", " x❤ y"),
        ("\ue000", "\ue000\ue000"),
    ],
)
def test_index_text(text, form):
    assert index_text(text) == form


def test_ascii_is_not_even_copied():
    text = "a" * 1000
    assert index_text(text) is text


@given(MIXED)
@settings(max_examples=60, deadline=None)
def test_tokens_are_what_the_rules_say(text):
    assert tokens(index_text(text)) == plain_tokens(text)


@given(MIXED)
@settings(max_examples=60, deadline=None)
def test_normal_forms_have_one_index_form(text):
    for form in ("NFC", "NFD"):
        assert tokens(index_text(unicodedata.normalize(form, text))) == tokens(index_text(text))


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_text_has_an_index_form_without_stray_tokens(text):
    assert "" not in tokens(index_text(text))


@pytest.mark.parametrize("text", ["", "a b", "é b", "日 本", "x😀yé z", "𠮷é"])
def test_token_spans_are_in_bytes(text):
    encoded = text.encode()
    spans = token_spans(encoded)
    assert [token for _, _, token in spans] == tokens(text)
    for start, end, token in spans:
        assert tokens(encoded[start:end].decode()) == [token]
