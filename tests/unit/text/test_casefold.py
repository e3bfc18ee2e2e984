from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text.casefold import find_folded, fold_text

HARD = st.text(st.sampled_from("aAKkſßİiıΣσςÅåȺⱥǅǆ日😀𐐀 "), max_size=30)


def test_every_code_point_folds_on_its_own():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        expected = char.lower() if len(char.lower()) == 1 else char
        assert fold_text(char) == expected


@given(HARD | st.text(max_size=30))
@settings(max_examples=60, deadline=None)
def test_neighbours_do_not_matter(text):
    assert fold_text(text) == "".join(map(fold_text, text))


@pytest.mark.parametrize(
    ("text", "query", "place"),
    [
        ("Straße", "straße", 0),
        ("Strasse", "straße", -1),
        ("\u212aelvin", "kelvin", 0),
        ("İstanbul", "istanbul", -1),
        ("İstanbul", "stanbul", 1),
        ("ΟΔΟΣ", "οδος", -1),
        ("ΟΔΟΣ", "οδοσ", 0),
        ("ȺȺȺneedle", "needle", 3),
        ("", "x", -1),
        ("abc", "", 0),
    ],
)
def test_find_folded(text, query, place):
    assert find_folded(text, fold_text(query)) == place


def test_find_folded_goes_on_from_a_place():
    assert find_folded("aXbXc", "x", 2) == 3
    assert find_folded("aXbXc", "x", 4) == -1
    assert find_folded("abc", "", 3) == 3
    assert find_folded("abc", "", 4) == -1


@pytest.mark.parametrize("lead", [65_533, 65_534, 65_535, 65_536, 131_070, 200_000])
def test_a_match_across_slices_is_found(lead):
    assert find_folded("é" * lead + "NEEDLE" + "é" * 9, "needle") == lead


@given(HARD, HARD.filter(bool))
@settings(max_examples=60, deadline=None)
def test_find_folded_is_find_of_the_folded_text(text, query):
    assert find_folded(text, fold_text(query)) == fold_text(text).find(fold_text(query))
