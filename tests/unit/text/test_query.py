from __future__ import annotations

import pytest

from flue_grpc.errors import BadQueryError, EmptyQueryError, QueryTooLongError
from flue_grpc.text.query import Query, Term, parse_literal, parse_plain, parse_ranked

from .nasty_queries import NASTY


def words(*terms):
    return tuple(Term(tuple(term.split())) for term in terms)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("fix the bug", ("fix", "the", "bug")),
        ("  Fix\tTHE\u3000bug \n", ("fix", "the", "bug")),
        ("don't foo-bar parse_line", ("don t", "foo bar", "parse line")),
        ("数据库DB", ("数 据 库 db",)),
        ("今日。本", ("今 日 \ue000 本",)),
        ("bug BUG Bug", ("bug",)),
        ("café cafe\u0301 cafe", ("cafe",)),
        ("a\0b", ("a", "b")),
        ('"a b" c* -d', ("a", "b", "c", "d")),
        ("a AND b OR NOT c NEAR(d)", ("a", "and", "b", "or", "not", "c", "near d")),
        ("* bug 😀", ("bug",)),
        ("C++ x² ½", ("c", "x²", "½")),
        ("❤️love", ("love",)),
    ],
)
def test_plain_words(query, terms):
    assert parse_plain(query) == Query(words(*terms))


@pytest.mark.parametrize("query", ["*", "😀", "❤️ 🤖", "...", "\0", "\u0301", "-", '"', "་"])
@pytest.mark.parametrize("parse", [parse_plain, parse_ranked])
def test_words_without_letters_alone_match_nothing(query, parse):
    if query != '"' or parse is parse_plain:
        assert parse(query).matches_nothing


@pytest.mark.parametrize("parse", [parse_plain, parse_ranked, parse_literal])
@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000", "\u2028"])
def test_a_blank_query_is_an_error(query, parse):
    with pytest.raises(EmptyQueryError) as error:
        parse(query)
    assert error.value.field == "query"


@pytest.mark.parametrize("parse", [parse_plain, parse_ranked, parse_literal])
def test_the_limit_is_in_bytes(parse):
    parse("x" * 8192)
    parse("é" * 4096)
    for query in ("x" * 8193, "é" * 4097, " " * 8193):
        with pytest.raises(QueryTooLongError) as error:
            parse(query)
        assert error.value.metadata == {"limit": "8192"}


@pytest.mark.parametrize(
    ("query", "required", "excluded"),
    [
        ("fix the bug", ("fix", "the", "bug"), ()),
        ('"fix the" bug', ("fix the", "bug"), ()),
        ('fix"the bug"now', ("fix", "the bug", "now"), ()),
        ("-old new", ("new",), ("old",)),
        ('new -"old way"', ("new",), ("old way",)),
        ("new -foo-bar", ("new",), ("foo bar",)),
        ("foo-bar a - b", ("foo bar", "a", "b"), ()),
        ("--force push", ("push",), ("force",)),
        ('"a"-b', ("a", "b"), ()),
        ('a-"b c"', ("a", "b c"), ()),
        ('"" x', ("x",), ()),
        ("x -*", ("x",), ()),
        ("a*b *c", ("a b", "c"), ()),
        ('"a*" "b"*', ("a", "b"), ()),
        ("foo-*", ("foo",), ()),
        ("数据* “x y”", ("数 据", "x", "y"), ()),
        ("x -x", ("x",), ("x",)),
        ("x x -y -Y", ("x",), ("y",)),
        ("a\0-b", ("a",), ("b",)),
        ('"a\0b"', ("a b",), ()),
        ('"今日 本"', ("今 日 本",), ()),
    ],
)
def test_ranked_language(query, required, excluded):
    assert parse_ranked(query) == Query(words(*required), words(*excluded))


@pytest.mark.parametrize(
    ("query", "tokens"),
    [
        ("pre*", ("pre",)),
        ("Pré**", ("pre",)),
        ("foo-ba*", ("foo", "ba")),
        ("数据li*", ("数", "据", "li")),
        ("２x*", ("2x",)),
    ],
)
def test_prefixes(query, tokens):
    assert parse_ranked(query) == Query((Term(tokens, is_prefix=True),))
    assert parse_ranked(f"x -{query}").excluded == (Term(tokens, is_prefix=True),)


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ('"', 0),
        ('a "b', 2),
        ('"a" "b', 4),
        ('日本 😀 -"b c', 6),
        ('\0\0"', 2),
        ("-a", 0),
        ("  -a -b", 2),
        ('-"a b"', 0),
        ("-*", 0),
    ],
)
def test_syntax_errors_tell_the_position(query, position):
    with pytest.raises(BadQueryError) as error:
        parse_ranked(query)
    assert error.value.metadata == {"position": str(position)}
    assert error.value.field == "query"


def test_at_most_64_terms():
    terms = ["w", '"a b"', "p*", "-n"] * 16
    assert len(parse_ranked(" ".join(terms)).required) == 3
    parse_ranked(" ".join(["数" * 40] * 64))
    for query in (" ".join([*terms, "x"]), " ".join(["x"] * 65), "* " * 65):
        with pytest.raises(QueryTooLongError) as error:
            parse_ranked(query)
        assert error.value.metadata == {"limit": "64"}
    assert len(parse_plain(" ".join(map(str, range(1000)))).required) == 1000


def test_literal_is_trimmed_at_both_ends_only():
    assert parse_literal("\u3000 a  B\t\n") == "a  B"
    assert parse_literal("\0") == "\0"


@pytest.mark.parametrize("query", NASTY)
def test_nasty_queries_parse(query):
    parse_plain(query)
    try:
        parse_ranked(query)
    except BadQueryError:
        assert '"' in query or query.lstrip().startswith("-")
    except QueryTooLongError:
        assert len(query) > 128
