from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue.agentindex.v1 import agent_index_pb2
from flue_grpc import limits
from flue_grpc.text import casefold, snippets
from flue_grpc.text.casefold import find_folded, fold_text
from flue_grpc.text.clean import strip_ansi
from flue_grpc.text.query import parse_ranked
from flue_grpc.text.snippets import Snippet, literal_snippet, ranked_snippet


def literal(text, query):
    return literal_snippet(text, fold_text(query))


def marked(snippet):
    encoded = snippet.text.encode()
    return [encoded[start:end].decode() for start, end in snippet.ranges]


def test_a_short_text_is_shown_whole():
    assert literal("Fix the Bug", "bug") == Snippet("Fix the Bug", ((8, 11),), 8)


def test_no_match_is_no_snippet():
    assert literal("abc", "d") is None
    assert ranked_snippet("今日。本", parse_ranked("日本")) is None


def test_80_code_points_stand_on_each_side():
    text = "a" * 500 + "X" + "b" * 500
    assert literal(text, "x") == Snippet("a" * 80 + "X" + "b" * 80, ((80, 81),), 500)
    wide = "é" * 500 + "😀" + "日" * 500
    assert literal(wide, "😀") == Snippet("é" * 80 + "😀" + "日" * 80, ((160, 164),), 1000)


def test_white_space_is_folded_and_trimmed():
    snippet = literal("one\n\n  two\tTHREE \u3000 four\n", "three")
    assert snippet.text == "one two THREE four"
    assert marked(snippet) == ["THREE"]
    assert snippet.text_offset == 11


def test_escapes_and_controls_are_removed():
    snippet = literal("\x1b[31mError\x1b[0m:\x07 disk \x1b[1mfull\x1b[0m", "disk")
    assert snippet.text == "Error: disk full"
    assert marked(snippet) == ["disk"]
    assert snippet.text_offset == 17


def test_an_escape_that_the_window_would_cut_leaves_nothing():
    snippet = literal(" " * 200 + "\x1b[38;5;196m" + " " * 318 + "needle", "needle")
    assert snippet.text == "needle"


def test_a_match_inside_an_escape_has_no_range():
    assert literal("a\x1b[31mb", "[31m") == Snippet("ab", (), 2)
    link = "\x1b]8;;https://a.example/" + "x" * 400 + "needle\x07shown"
    assert literal(link, "needle").text_offset == 423
    link = "\x1b]8;;" + "x" * 355 + "needle\x07shown"
    assert literal(link, "needle") == Snippet("shown", (), 360)


def test_further_matches_in_the_window_have_ranges_too():
    snippet = literal("x needle needle needle" + "." * 100 + "needle", "needle")
    assert marked(snippet) == ["needle"] * 3
    assert snippet.ranges[0] == (2, 8)


def test_a_match_that_the_cut_would_split_has_no_range():
    snippet = literal("needle" + "." * 77 + "needle", "needle")
    assert marked(snippet) == ["needle"]
    assert snippet.text.endswith(".nee")


def test_overlapping_matches_count_once():
    assert literal("aaaa", "aa").ranges == ((0, 2), (2, 4))


def test_folded_letters_keep_their_places():
    snippet = literal("ȺȺ İstanbul \u212aelvin", "KELVIN")
    assert marked(snippet) == ["\u212aelvin"]
    assert snippet.text_offset == len("ȺȺ İstanbul ".encode())


def test_a_long_match_is_shown_whole():
    assert literal("x" * 9000, "x" * 8000).ranges == ((0, 8000),)


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("the quick brown fox", "brown quick", ["quick", "brown"]),
        ("SQLite锁与数据库", "数据 锁", ["锁", "数据"]),
        ("Re\u0301sume\u0301 of the day", "resume", ["Re\u0301sume\u0301"]),
        ("foo\n\nbar", '"foo bar"', ["foo bar"]),
        ("prefixes", "pre*", ["prefixes"]),
        ("a b", "a -c", ["a"]),
    ],
)
def test_ranked_ranges(text, query, expected):
    assert marked(ranked_snippet(text, parse_ranked(query))) == expected


def test_ranked_snippets_show_the_terms_together():
    text = "leak " + "x " * 500 + "memory leak here"
    snippet = ranked_snippet(text, parse_ranked("leak memory"))
    assert marked(snippet) == ["memory", "leak"]
    assert snippet.text_offset == 1005


@given(
    st.text("aAbİKß日 \n\x1b[m3\x07é", max_size=300), st.text("aAbKß日é", min_size=1, max_size=3)
)
@settings(max_examples=60, deadline=None)
def test_ranges_hold_the_query(text, query):
    snippet = literal(text, query)
    place = find_folded(text, fold_text(query))
    assert (snippet is None) == (place < 0)
    if snippet is None:
        return
    assert snippet.text == " ".join(snippet.text.split())
    assert "\x1b" not in snippet.text
    assert snippet.text_offset == len(text[:place].encode())
    for piece in marked(snippet):
        assert fold_text(piece).replace(" ", "") in fold_text(strip_ansi(query))
    assert all(a < b for a, b in snippet.ranges)
    ends = [at for bounds in snippet.ranges for at in bounds]
    assert ends == sorted(ends)


class TestWorkIsLinear:
    """However many matches, control characters and wide letters the window holds."""

    CONTEXT = 4000

    def test_what_is_behind_a_match_is_folded_once(self, monkeypatch):
        folded = []

        def counting(text):
            folded.append(len(text))
            return fold_text(text)

        for module in (casefold, snippets):
            monkeypatch.setattr(module, "fold_text", counting, raising=False)
        snippet = literal_snippet("D" * 300_000, "d", self.CONTEXT)
        assert len(snippet.ranges) == self.CONTEXT + 1
        assert sum(folded) <= casefold._SLICE + 4 * self.CONTEXT

    def test_ranges_stand_behind_wide_letters_and_noise(self):
        text = "éd\x07" * 100_000
        snippet = literal_snippet(text, "d", self.CONTEXT)
        assert len(snippet.text) == self.CONTEXT + 2
        assert len(snippet.ranges) == self.CONTEXT // 2 + 1
        assert snippet.ranges == tuple((at, at + 1) for at in range(2, 3 * 2001, 3))
        assert marked(snippet) == ["d"] * 2001

    @given(st.lists(st.sampled_from(["d", "é", " ", "\x07", "\n\n", "\x1b[m", "日"]), max_size=40))
    @settings(max_examples=100, deadline=None)
    def test_each_place_of_a_line_is_where_a_walk_over_its_noise_finds_it(self, pieces):
        raw = "".join(pieces)
        line = snippets._Line(raw)
        for at in range(len(raw) + 1):
            assert line._place(at) == walked(line._noise, at)


def walked(noise, at):
    shift = 0
    for start, end, first, last in noise:
        if at < start:
            break
        if at < end:
            return first, last
        shift = last - end
    return at + shift, at + shift


@pytest.mark.parametrize("letter", ["d", "é", "日", "😀"])
def test_a_hit_with_the_largest_context_fits_far_into_a_response(letter):
    most = limits.SNIPPET_CODE_POINTS_MAX
    snippet = literal_snippet(letter * 100_000, letter, most)
    assert len(snippet.text) == most + 1
    hit = agent_index_pb2.Hit(snippet=snippet.text)
    for start, end in snippet.ranges:
        hit.ranges.add(start=start, end=end)
    assert hit.ByteSize() < limits.BATCH_MAX_BYTES / 4
