from __future__ import annotations

import pytest
from hypothesis import given, settings

from flue_grpc.text.match import verifier
from flue_grpc.text.occurrences import Occurrence, best_window, occurrences
from flue_grpc.text.query import parse_plain, parse_ranked

from .test_match import PIECES, TEXTS


def found(text, query):
    terms = parse_ranked(query).required
    return [(text[place.start : place.end], place.term) for place in occurrences(text, terms)]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("a b a", "a", [("a", 0), ("a", 0)]),
        ("foo-bar foo bar foobar", "foo-bar", [("foo-bar", 0), ("foo bar", 0)]),
        ("prefix preset xpre", "pre*", [("prefix", 0), ("preset", 0)]),
        ("foo bar bars", '"foo bar" bar*', [("foo bar", 0), ("bar", 1), ("bars", 1)]),
        ("a a a", '"a a"', [("a a", 0), ("a a", 0)]),
        ("数据库 SQLite锁", "据库 锁", [("据库", 0), ("锁", 1)]),
        ("re\u0301sume\u0301", "resume", [("re\u0301sume\u0301", 0)]),
        ("今日。本", "日本", []),
    ],
)
def test_occurrences(text, query, expected):
    assert found(text, query) == expected


@given(TEXTS, PIECES.filter(str.strip))
@settings(max_examples=60, deadline=None)
def test_each_required_term_of_a_match_is_found(text, words):
    query = parse_plain(words)
    if not query.matches_nothing:
        terms = {place.term for place in occurrences(text, query.required)}
        assert (terms == set(range(len(query.required)))) == verifier(query).accepts(text)


def places(*entries):
    return [Occurrence(start, start + 2, term) for start, term in entries]


def test_the_window_with_most_terms_is_taken_and_the_first_of_equals():
    entries = places((0, 0), (50, 0), (300, 1), (310, 0), (500, 1), (505, 0))
    assert best_window(entries, 160) == [(300, 302), (310, 312), (500, 502), (505, 507)]
    assert best_window(places((0, 0), (500, 0)), 160) == [(0, 2), (500, 502)]


def test_overlapping_places_become_one_span():
    assert best_window([Occurrence(0, 5, 0), Occurrence(3, 9, 1)], 160) == [(0, 9)]
    assert best_window([], 160) == []


def test_a_better_window_is_not_sought_without_end():
    def endless():
        yield Occurrence(0, 2, 0)
        for start in range(10, 10_000_000, 1000):
            assert start < 70_000
            yield Occurrence(start, start + 2, 0)

    assert best_window(endless(), 160)[0] == (0, 2)
