from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from flue_grpc.text import scripts
from flue_grpc.text.index_form import index_text
from flue_grpc.text.tokenizer import tokens

from .fts import SPLIT_NAMES

SPLIT = re.compile(f"[{scripts.SPLIT}]")
OPAQUE = re.compile(f"[{scripts.OPAQUE}]")


def is_token(category):
    return category[0] in "LN" or category in ("Co", "Mn", "Mc")


def characters():
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category not in ("Cs", "Cn"):
            yield chr(code), category


def test_split_holds_the_token_characters_of_its_scripts():
    for char, category in characters():
        name = unicodedata.name(char, "")
        if SPLIT.match(char):
            assert is_token(category), name
        elif name.startswith(SPLIT_NAMES) and is_token(category):
            # Width forms are folded before, and the circled forms are numbers of no script.
            assert name.startswith(("HALFWIDTH", "HANGUL JAMO")) or category == "No", name


@pytest.mark.parametrize("char", "々〇〆ー〻ゝヾｶﾞ한ㄅㄱ가กิາກខ្ကာཀི𠮷𛀀")
def test_these_stand_alone(char):
    assert SPLIT.match(unicodedata.normalize("NFKC", char))


@pytest.mark.parametrize("char", "゛・。฿๏។၊་㈠㊀⺀｡aé1")
def test_these_do_not(char):
    assert not SPLIT.match(char)


def test_every_character_is_a_token_exactly_when_its_category_says_so():
    for char, _ in characters():
        is_width = "\uff00" <= char <= "\uffef"
        composed = unicodedata.normalize("NFKC" if is_width else "NFC", char)
        composed = composed.lstrip() or " "
        category = unicodedata.category(composed[0])
        expected = len(composed) if category not in ("Mn", "Mc") and is_token(category) else 0
        if len(composed) == 1 or expected == 0:
            assert len(tokens(index_text(char))) == expected, hex(ord(char))


def test_split_characters_fold_to_themselves():
    for char, _ in characters():
        if SPLIT.match(char) and unicodedata.normalize("NFC", char) == char:
            assert tokens(f"a {char}") == ["a", char]


def test_opaque_characters_are_no_token_characters():
    for char, category in characters():
        if OPAQUE.match(char):
            assert not is_token(category), hex(ord(char))


def test_folding_a_token_again_changes_nothing():
    for char, category in characters():
        if is_token(category):
            found = tokens(f"a{char}")
            assert tokens(found[0]) == found[:1]


def test_marks_are_all_marks_but_selectors():
    every, spaced = (re.compile(f"[{body}]") for body in scripts.marks())
    for char, category in characters():
        is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
        is_mark = category in ("Mn", "Mc") and not is_selector
        assert bool(every.match(char)) == is_mark, hex(ord(char))
        assert bool(spaced.match(char)) == (is_mark and not SPLIT.match(char)), hex(ord(char))


def test_bmp_leaves_the_astral_ranges_out():
    assert (
        scripts.bmp("\\U00000041-\\U0000005a\\U00010000-\\U0001ffff") == "\\U00000041-\\U0000005a"
    )
