from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.errors import BadQueryError, QueryTooLongError
from flue_grpc.text.clean import sanitize
from flue_grpc.text.match import lookup, verifier
from flue_grpc.text.query import Query, Term, parse_plain, parse_ranked

from .fts import Index, plain_matches
from .nasty_queries import NASTY

LETTERS = "aAbéß Дй数据库日か ガー한글กิน12"
PIECES = st.text(
    st.sampled_from(LETTERS + "-'.。、😀🤖\ufe0f\u0301\u3099\u200d\ue000ＡｶﾞＺ\0"),
    min_size=1,
    max_size=10,
)
TEXTS = st.lists(PIECES, min_size=1, max_size=6).map(" ".join)


def term(tokens, *, is_prefix=False):
    return Term(tuple(tokens.split()), is_prefix)


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        (Query((term("a"),)), '"a"'),
        (Query((term("a b"), term("c"))), '"a b" AND "c"'),
        (Query((term("a b", is_prefix=True),)), '"a b" *'),
        (Query((term("a"),), (term("b"), term("c d"))), '("a") NOT ("b" OR "c d")'),
    ],
)
def test_expression(query, expression):
    plan = lookup(query)
    assert plan.expression == expression
    assert plan.verifier is None


def test_a_long_phrase_is_looked_up_by_its_first_16_tokens():
    long = " ".join(map(str, range(17)))
    plan = lookup(Query((term(long),)))
    assert plan.expression == '"0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"'
    assert plan.verifier.accepts(f"x {long} y")
    assert not plan.verifier.accepts(f"{long}7")
    assert not plan.verifier.accepts(long.replace("7", "x"))
    assert lookup(Query((term(long.removesuffix(" 16")),))).verifier is None


def test_at_most_64_tokens_are_looked_up():
    phrases = [" ".join(f"{name}{number}" for number in range(15)) for name in "abcdef"]
    plan = lookup(Query(tuple(map(term, phrases))))
    assert plan.expression.count("a1") == 6
    assert sum(len(part.split()) for part in plan.expression.split(" AND ")) == 64
    assert plan.verifier.accepts(" - ".join(phrases))
    assert not plan.verifier.accepts(" - ".join(phrases[:5]))
    assert not plan.verifier.accepts(" - ".join([*phrases[:4], phrases[4][:-1], phrases[5]]))


def test_an_excluded_term_is_looked_up_whole_or_verified():
    long = " ".join("abcdefghijklmnopq")
    plan = lookup(Query((term("x"),), (term(long), term("y"))))
    assert plan.expression == '("x") NOT ("y")'
    assert plan.verifier.accepts("x a b c d e f g h i j k l m n o p")
    assert not plan.verifier.accepts(f"x {long}")


def test_excluded_terms_over_the_budget_are_verified():
    required = tuple(term(f"a{number}") for number in range(63))
    plan = lookup(Query(required, (term("b c"), term("d"))))
    assert plan.expression.endswith(' NOT ("d")')
    assert not plan.verifier.accepts("b c")
    assert plan.verifier.accepts("c b d")


def test_a_cut_prefix_phrase_is_verified_as_prefix():
    stem = " ".join(map(str, range(17)))
    plan = lookup(Query((term(stem, is_prefix=True),)))
    assert "*" not in plan.expression
    assert plan.verifier.accepts(f"{stem}42")
    assert not plan.verifier.accepts(stem.removesuffix("16") + "1")


@pytest.mark.parametrize("size", [1, 15, 16, 17, 40, 64, 200])
def test_repeated_characters_are_found_exactly(size):
    texts = ["人" * count for count in (size - 1, size, size + 1)] + ["人" * size + "。人" * size]
    assert Index(texts).find(parse_plain("人" * size)) == [1, 2, 3]


@given(st.lists(TEXTS, min_size=1, max_size=5), PIECES.filter(str.strip))
@settings(max_examples=60, deadline=None)
def test_the_index_finds_what_plain_python_finds(texts, query):
    expected = [
        number
        for number, text in enumerate(texts)
        if plain_matches(query.replace("\0", " ").split(), text)
    ]
    parsed = parse_plain(query)
    assert Index(texts).find(parsed) == expected
    if not parsed.matches_nothing:
        accepts = verifier(parsed).accepts
        assert [number for number, text in enumerate(texts) if accepts(text)] == expected


@given(TEXTS.filter(str.strip))
@settings(max_examples=60, deadline=None)
def test_a_text_is_found_by_itself(text):
    query = parse_plain(text)
    assert query.matches_nothing or Index([text]).find(query) == [0]


@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(["", "-"]), TEXTS, st.sampled_from(["w", "p", "*"])),
        min_size=1,
        max_size=4,
    ),
)
@settings(max_examples=60, deadline=None)
def test_ranked_lookup_agrees_with_the_verifier(texts, pieces):
    parts = []
    for minus, text, kind in pieces:
        body = {"p": f'"{text}"', "*": text.split(" ")[0] + "*", "w": text}[kind]
        parts.append(minus + body)
    try:
        query = parse_ranked(" ".join(parts))
    except (BadQueryError, QueryTooLongError):
        return
    if not query.matches_nothing:
        accepts = verifier(query).accepts
        expected = [number for number, text in enumerate(texts) if accepts(text)]
        assert Index(texts).find(query) == expected


def test_nasty_queries_are_answered_and_find_themselves():
    texts = [sanitize(query) for query in NASTY]
    assert len(texts) >= 300
    index = Index(texts)
    for number, query in enumerate(NASTY):
        parsed = parse_plain(query)
        assert parsed.matches_nothing or number in index.find(parsed), query
