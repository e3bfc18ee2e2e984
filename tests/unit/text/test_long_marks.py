"""Text that would take the normalizer quadratic time, and places that would take as long."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.text import index_form, locate, scripts
from flue_grpc.text.index_form import index_text
from flue_grpc.text.match import verifier
from flue_grpc.text.query import parse_plain, parse_ranked
from flue_grpc.text.snippets import ranked_snippet
from flue_grpc.text.tokenizer import tokens

from .test_locate import located, located_tokens

MIX = "\u0301\u0323"
# 30 marks, of which one may be two (U+0344), behind a letter that is one with three marks.
MOST_IN_ORDER = 63
RUNS = st.lists(
    st.tuples(
        st.sampled_from(["a", "\u1f82", "", "字", "か", "ｶ", "\U0001d15e", " ", "\u1100"]),
        st.text(
            st.sampled_from(
                "\u0301\u0323\u0345\u0344\u3099\uff9e\u0f73\u05b0\u093c\u0b3e\u1161\u302a"
                "\U0001d165\U0001e8d0\ufe0f\u034f"
            ),
            max_size=3,
        ),
        st.integers(0, 80),
    ),
    max_size=6,
).map(lambda parts: "".join(base + marks * count for base, marks, count in parts))


def longest_run(text):
    """Count the most marks in a row that the normalizer has to put in order."""
    longest = run = 0
    for character in unicodedata.normalize("NFD", text):
        run = run + 1 if unicodedata.combining(character) else 0
        longest = max(longest, run)
    return longest


@pytest.fixture
def normalized(monkeypatch):
    """The longest run of each text that is normalized."""
    seen = []

    class Watched:
        category = staticmethod(unicodedata.category)

        @staticmethod
        def normalize(form, text):
            seen.append(longest_run(text))
            return unicodedata.normalize(form, text)

    monkeypatch.setattr(index_form, "unicodedata", Watched)
    return seen


@pytest.mark.parametrize(
    "unit", [MIX, "\u0345\u0301\u0327", "\u0344\u0323", "\uff9e\uff9f", "\U0001d165\u0301"]
)
@pytest.mark.parametrize("lead", ["", "a", "字", "😀"])
def test_no_long_run_reaches_the_normalizer(normalized, lead, unit):
    text = f"{lead}{unit * 300}x"
    index_text(text)
    query = parse_plain(text)
    verifier(query).accepts(text)
    located_tokens(text)
    ranked_snippet(text, query)
    assert len(normalized) >= 5
    assert max(normalized) <= MOST_IN_ORDER


def test_any_text_is_normalized_in_short_runs(normalized):
    @given(RUNS)
    @settings(max_examples=60, deadline=None)
    def holds(text):
        index_text(text)
        located_tokens(text)
        assert max(normalized, default=0) <= MOST_IN_ORDER

    holds()


@given(RUNS, RUNS)
@settings(max_examples=60, deadline=None)
def test_a_text_is_found_by_itself_and_in_another(text, other):
    query = parse_ranked(f'"{text}"') if text.strip() else parse_plain("x")
    assert query.matches_nothing or verifier(query).accepts(f"{other} {text} x")


@given(RUNS)
@settings(max_examples=60, deadline=None)
def test_places_of_long_runs_are_right(text):
    assert located_tokens(text) == tokens(index_text(text))
    assert all(0 <= start < end <= len(text) for start, end, _ in located(text))


def test_thirty_marks_stay_and_the_rest_are_spaces():
    ordered = "\u0301" * 30
    assert index_text("x" + ordered + "y") == unicodedata.normalize("NFC", "x" + ordered + "y")
    assert index_text("x" + "\u0301" * 33 + "y") == "x" + ordered + "   y"
    assert index_text("\u0301" * 33 + "y") == " " * 33 + "y"


def test_all_that_is_put_in_order_counts_as_a_mark():
    mark = re.compile(f"[{scripts.marks()[0]}]")
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            first = unicodedata.normalize("NFD", chr(code))[0]
            assert unicodedata.combining(first) == 0 or mark.match(chr(code))


def test_a_match_is_shown_with_all_of_its_marks():
    word = f"a{MIX * 50}"
    shown = ranked_snippet(f"xyz {word} b", parse_plain(word))
    (start, end) = shown.ranges[0]
    assert shown.text.encode()[start:end].decode() == word


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("人" * 60_000, "人"),
        ("人" * 60_000, "人" * 1000),
        ("\u1100\u1161" + "\u11a8" * 60_000, "\u11a8"),
        ("a " * 30_000, "a"),
    ],
    ids=["character", "phrase", "jamo", "word"],
)
def test_places_are_counted_once_through_the_text(monkeypatch, text, query):
    counted = []

    class Watched(locate._Count):
        def at(self, size):
            counted.append(abs(size - self._size))
            return super().at(size)

    monkeypatch.setattr(locate, "_Count", Watched)
    assert ranked_snippet(text, parse_plain(query)) is not None
    assert sum(counted) < 20 * len(text)
