from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.errors import CancelledError
from flue_grpc.text import pieces as pieces_module
from flue_grpc.text.index_form import _form, index_forms, index_text
from flue_grpc.text.match import lookup, verifier
from flue_grpc.text.pieces import pieces
from flue_grpc.text.query import parse_plain, parse_ranked
from flue_grpc.text.tokenizer import tokens

from .test_index_form import MIXED
from .test_locate import COMBINING
from .test_long_marks import RUNS
from .test_match import PIECES

ODD = st.text(
    "aб字か가\u1100\u1161\u11a8กิ\u0e34ｶﾞﾟ。、 ,_\u0301\u3099\u0338\ue000😀\U0001f3fd\U00020bb7"
    "ＡＢ1\u093e\u0915\u2126㊀〇\ufe0f\n",
    max_size=40,
)
ANY = ODD | MIXED | COMBINING | RUNS | st.text(max_size=30)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(limits, "PIECE_CODE_POINTS", 2)


@pytest.mark.usefixtures("small")
def test_pieces_have_the_tokens_of_the_whole_text():
    @given(ANY)
    @example("111\u0e34_\u0e01")
    @example("\u0e6c\u207e\u0f43")
    @settings(max_examples=300, deadline=None)
    def holds(text):
        forms = list(index_forms(text))
        assert [token for form in forms for token in tokens(form)] == tokens(_form(text))
        assert tokens("".join(forms)) == tokens(_form(text))
        assert "".join(p.text[: -1 if p.is_led else None] for p in pieces(text)) == text

    holds()


def test_each_letter_that_leads_is_a_token_alone():
    leading = f"[{pieces_module._ALONE}{pieces_module._VOWEL}{pieces_module._FINAL}]"
    letters = re.findall(leading, "".join(map(chr, range(0x30000))))
    assert len(letters) > 80_000
    assert [c for c in letters if len(tokens(_form(c))) != 1] == []
    assert [c for c in letters[::7] if _form(f"x。{c}")[-2] != _form(c)[1]] == []


@pytest.mark.usefixtures("small")
def test_a_text_in_pieces_is_accepted_as_the_whole_text_is(monkeypatch):
    @given(st.lists(PIECES | ODD, min_size=1, max_size=5).map(" ".join), PIECES | ODD)
    @settings(max_examples=150, deadline=None)
    def holds(text, words):
        queries = [f'"{words}"', f'{words}* -"字 か"', f"{text[1:4]} {words}"]
        for source in queries:
            if not source.strip() or source.count('"') % 2:
                continue
            query = parse_plain(source)
            if query.matches_nothing:
                continue
            monkeypatch.setattr(limits, "PIECE_CODE_POINTS", 2)
            found = verifier(query).accepts(text)
            monkeypatch.setattr(limits, "PIECE_CODE_POINTS", 10_000)
            assert verifier(query).accepts(text) == found

    holds()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("text", "query", "is_accepted"),
    [
        ("今日は今。日本", "今日は今", True),
        ("今日は今。日本", "今日本", False),
        ("abc def ghi jkl", "abc-def-ghi-jkl", True),
        ("abc def ghi jkl", "abc-def-jkl", False),
        ("字" * 40, "字" * 40, True),
        ("字" * 39, "字" * 40, False),
    ],
)
def test_a_phrase_across_pieces(text, query, is_accepted):
    assert verifier(parse_plain(query)).accepts(text) == is_accepted


def test_what_is_excluded_may_stand_in_the_last_piece(monkeypatch):
    monkeypatch.setattr(limits, "PIECE_CODE_POINTS", 2)
    check = verifier(parse_ranked("a* -zz"))
    assert check.accepts("ab cd ef gh")
    assert not check.accepts("ab cd ef zz")


@pytest.mark.parametrize(
    "unit",
    [
        "数据库在系统中",
        "人。",
        "ж字",
        "か\u3099",
        "กิน",
        "\u1161",
        "\u11a8",
        "\u1161\u11a8",
        "\u1100\u1161",
        "ｶﾞ",
        "word ",
        "слово, ",
        "a\u0301 ",
        "\u0915\u093e, ",
        "\U00020bb7",
        "한",
        "ကို",
    ],
)
def test_pieces_of_any_script_are_small(unit):
    text = unit * (200_000 // len(unit))
    assert max(len(piece.text) for piece in pieces(text)) < limits.PIECE_CODE_POINTS + 16


@pytest.mark.parametrize("unit", ["ж", "。", "😀", "\u0e34", "_", "\u0301"])
def test_a_long_word_or_what_is_none_has_few_tokens(unit):
    assert len(tokens(index_text("я" + unit * 100_000))) <= 31


class Stopping:
    """Calls the work off when it is asked for the last time."""

    def __init__(self, count) -> None:
        self.count = count

    def is_cancelled(self):
        return False

    def check(self):
        self.count -= 1
        if self.count == 0:
            raise CancelledError("enough")


def test_verifying_asks_before_each_piece():
    text = "数据库在系统中的设计与实现方法论" * 20_000
    check = lookup(parse_plain("设计与实现方法论数据库在系统中的设法")).verifier
    pieces_count = -(-len(text) // (limits.PIECE_CODE_POINTS + 1))
    never = Stopping(pieces_count + 5)
    assert not check.accepts(text, never)
    assert pieces_count <= pieces_count + 5 - never.count <= pieces_count + 1
    with pytest.raises(CancelledError):
        check.accepts(text, Stopping(3))
