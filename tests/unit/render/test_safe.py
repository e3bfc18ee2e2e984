from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.render.safe import as_json, for_cell, for_line, for_terminal

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
NASTY = st.text(st.sampled_from("ab \t\r\n\x07\x1b[]0;31m\\\x9b\x9d\x7f\x85\x00\u202e\u2028é数"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nsecond", "plain\ttext\nsecond"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]52;c;ZXZpbA==\x07clip", "clip"),
        ("\x9b2Jgone", "gone"),
        ("over\rwrite", "over\u240dwrite"),
        ("bell\x07 nul\x00 del\x7f c1\x85", "bell\u2407 nul\u2400 del\u2421 c1\ufffd"),
        ("abc\u202edcba", "abc\ufffddcba"),
        ("数据库 🙂 é", "数据库 🙂 é"),
    ],
)
def test_nothing_acts_on_a_terminal(text, shown):
    assert for_terminal(text) == shown


@settings(max_examples=100, deadline=None)
@given(NASTY)
def test_no_control_character_is_left(text):
    assert not FORBIDDEN.search(for_terminal(text))
    assert not FORBIDDEN.search(for_line(text))
    assert not re.search("[\t\n]", for_line(text))


@settings(max_examples=100, deadline=None)
@given(NASTY)
def test_json_is_safe_and_keeps_every_character(text):
    written = as_json({"text": text})
    assert not FORBIDDEN.search(written)
    assert json.loads(written) == {"text": text}


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("gpt-5.5", "gpt-5.5"),
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("@x", "'@x"),
        ("-x", "'-x"),
        ("\t=x", "'=x"),
        ("a\nb", "a b"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff201", "'\uff201"),
        ("\ufe66x", "'\ufe66x"),
        ("\ufeff=1+1", "'\ufeff=1+1"),
        ("\u200b=1+1", "'\u200b=1+1"),
        ("\u200b \u2060\u00ad\ufe0f\uff1d1", "'\u200b \u2060\u00ad\ufe0f\uff1d1"),
        ("\u200bgpt-5", "\u200bgpt-5"),
        ("\u200b", "\u200b"),
        ("", ""),
        ("数=1", "数=1"),
    ],
)
def test_no_cell_is_a_formula(text, cell):
    assert for_cell(text) == cell
