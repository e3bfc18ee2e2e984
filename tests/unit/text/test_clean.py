from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text import clean

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("naïve 日本 😀", "naïve 日本 😀"),
        ("a\0b", "a\ufffdb"),
        ("é\0\0", "é\ufffd\ufffd"),
        ("\ud83d", "\ufffd"),
        ("x\udcb2y", "x\ufffdy"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\ufeffa\ud800", "\ufeffa\ufffd"),
    ],
)
def test_sanitize_replaces_what_cannot_be_encoded(text, expected):
    assert clean.sanitize(text) == expected


@given(ANY_TEXT)
@settings(max_examples=60, deadline=None)
def test_sanitized_text_is_valid_and_stable(text):
    once = clean.sanitize(text)
    assert "\0" not in once
    assert once.encode().decode() == once
    assert clean.sanitize(once) is once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no escapes [31m", "no escapes [31m"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;196mx\x1b[K\x1b[2J\x1b[?25ly", "xy"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;https://a.example/\x1b\\link\x1b]8;;\x1b\\.", "link."),
        ("\x1bPq#0~\x1b\\after", "after"),
        ("\x1b(Bascii\x1b7\x1b8", "ascii"),
        ("\x9b1mbold", "bold"),
        ("cut \x1b[3", "cut "),
        ("lone \x1b", "lone "),
        ("\x1b]never ended", "never ended"),
    ],
)
def test_strip_ansi_leaves_the_visible_text(text, expected):
    assert clean.strip_ansi(text) == expected


@given(st.text("\x1b\x9b[]P\\\x07;0mé ", max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_escape_survives(text):
    assert not {"\x1b", "\x9b"} & set(clean.strip_ansi(text))


def test_unterminated_escapes_cost_one_pass():
    text = "\x1b]x" * 200_000
    assert clean.strip_ansi(text) == "x" * 200_000


def test_fold_whitespace_joins_every_kind():
    assert clean.fold_whitespace("\t a\r\n\u00a0\u3000b\u2028c \n") == "a b c"


def test_strip_controls_keeps_white_space():
    assert clean.strip_controls("a\x07\t\x08b\n\x7fc\x85\x9dd\u200d") == "a\tb\nc\x85d\u200d"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\n \n\x1b[0m\n\x07", ""),
        ("\n\n  fix \t a\x1b[1m bug\x1b[0m \nsecond", "fix a bug"),
        ("x" * 30, "x" * 10),
        ("123456789 abc", "123456789"),
        ("日本語" * 9, "日本語日本語日本語日"),
    ],
)
def test_first_line_is_a_title(text, expected):
    assert clean.first_line(text, 10) == expected


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("abc", 2, "ab"),
        ("abc", 0, ""),
        ("é", 1, ""),
        ("aé", 2, "a"),
        ("aé", 3, "aé"),
        ("日本", 5, "日"),
        ("😀😀", 7, "😀"),
        ("😀", 4, "😀"),
    ],
)
def test_cut_bytes_ends_on_a_code_point(text, size, expected):
    assert clean.cut_bytes(text, size) == expected


@given(st.text(max_size=40), st.integers(0, 80))
@settings(max_examples=60, deadline=None)
def test_cut_bytes_is_the_longest_beginning(text, size):
    cut = clean.cut_bytes(text, size)
    assert text.startswith(cut)
    assert len(cut.encode()) <= size
    assert cut == text or len(text[: len(cut) + 1].encode()) > size


def test_cut_code_points_counts_code_points():
    assert clean.cut_code_points("日😀é", 2) == "日😀"
