from __future__ import annotations

import re
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex import matchers, prefilter
from flue_grpc.agentindex.adapters.base import Context
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.escapes import UNKNOWN, Escape, KnownEscapes, escape_kinds
from flue_grpc.agentindex.lines import Line
from flue_grpc.agentindex.opening import open_transcript
from flue_grpc.agentindex.prefilter import Prefilter, derive
from flue_grpc.agentindex.scanner import candidate_lines
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.cancel import NEVER
from tests.unit.agentindex import wild_transcripts as wild

BY_TOOL = {adapter.tool: adapter for adapter in ADAPTERS}
MATCHERS = [
    matchers.PlainMatcher,
    pytest.param(
        matchers.HyperscanMatcher,
        marks=pytest.mark.skipif(not matchers.has_hyperscan(), reason="needs the extra `fast`"),
    ),
]


def fold(text):
    """Fold as behaviour B7 words it, one code point at a time."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@pytest.mark.parametrize(
    ("query", "literal", "needs"),
    [
        ("error", b"rror", Escape.ASCII),
        ("tab", b"tab", Escape.ASCII | Escape.LETTER | Escape.CONTROL),
        ("don't panic", b"on't panic", Escape.ASCII),
        ("some text", b"some text", Escape.ASCII),
        ('"some/text, here"', b"some", Escape.ASCII),
        ("smoke", b"smo", Escape.ASCII),
        ("poke", b"poke", Escape.ASCII | Escape.KELVIN),
        ("2001 odd", b"001 odd", Escape.ASCII),
        ("u0001x", b"u0001x", Escape.ASCII | Escape.LETTER | Escape.CONTROL),
        ("kiosk system", b" system", Escape.ASCII),
        ("$ gis", b"gis", Escape.ASCII),
        ("a\nsome\nb", b"some", Escape.ASCII),
        ("é some", b"some", Escape.ASCII),
        ("xy", b"xy", Escape.ASCII),
        ('""}}s', b"s", Escape.ASCII),
    ],
)
def test_the_anchor_is_the_longest_that_is_cheap_to_guard(query, literal, needs):
    found = derive(query)
    assert (found.literal, found.needs) == (literal, needs)


def test_a_query_without_anything_to_look_for_takes_every_line():
    assert derive('""}}') == Prefilter()
    assert derive("\ufffd") == Prefilter()
    assert Prefilter().takes_everything


def test_a_run_beyond_ascii_is_looked_for_raw_and_escaped():
    found = derive("中文")
    assert re.fullmatch(found.pattern, "中文".encode())
    assert not re.search(found.pattern, "文中".encode())
    for escape in (rb"\u4e2d", rb"\u4E2D", rb"\u6587"):
        assert re.fullmatch(rb"\\u" + found.escaped, escape)
    assert found.patterns(Escape.NONE) == (found.pattern,)
    assert found.patterns(Escape.WIDE) == (found.pattern, rb"\\u" + found.escaped)


@pytest.mark.parametrize(
    ("query", "forms"),
    [
        ("é", "éÉ"),
        ("å", "åÅ\u212b"),
        ("ω", "ωΩ\u2126"),
        ("ß", "ßẞ"),
        ("σ", "σΣ"),
        ("ς", "ς"),
        ("İ", "İ"),
    ],
)
def test_every_case_of_a_letter_is_looked_for(query, forms):
    pattern = derive(query).pattern
    found = {
        c for c in map(chr, range(0x20000)) if re.fullmatch(pattern, c.encode("utf-8", "replace"))
    }
    assert found == set(forms)


def test_no_letter_beyond_the_table_has_case():
    beyond = map(chr, range(prefilter._CASED_END, sys.maxunicode + 1))
    assert [c for c in beyond if fold(c) != c] == []


def test_the_kelvin_sign_alone_folds_into_ascii():
    assert [c for c in map(chr, range(0x80, 0x20000)) if fold(c).isascii()] == ["\u212a"]


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (b'{"a":"plain"}\r\n', Escape.NONE),
        (rb'{"a":"\n\t\"\\ \u001b"}', Escape.NONE),
        (rb'{"a":"\u0041"}', Escape.ASCII),
        (rb'{"a":"\u007e"}', Escape.ASCII),
        (rb'{"a":"\u0009"}', Escape.LETTER),
        (rb'{"a":"\u000C"}', Escape.LETTER),
        (b'{"a":"\t"}\n', Escape.CONTROL),
        (b'{"a":"\r"}\n', Escape.CONTROL),
        (b'{"a":"\0"}\n', Escape.CONTROL),
        ('{"a":"\u212a"}'.encode(), Escape.KELVIN),
        (rb'{"a":"\u212A"}', Escape.KELVIN | Escape.WIDE),
        (rb'{"a":"\u00e9"}', Escape.WIDE),
        (rb'{"a":"\u0100"}', Escape.WIDE),
        (rb'{"a":"\uD83D\uDE00"}', Escape.WIDE),
    ],
)
def test_the_escapes_in_bytes_are_told_apart(data, kinds):
    assert escape_kinds(data) == kinds


def test_what_is_known_holds_only_for_the_bytes_that_were_seen():
    known = KnownEscapes(Escape.WIDE, 100)
    assert known.within(100) == Escape.WIDE
    assert known.within(101) == Escape.ANY
    assert UNKNOWN.within(0) == Escape.ANY


def test_a_candidate_has_to_hold_the_rest_of_the_query_too():
    wanted = derive('longest piece: "kax, ey" é')
    assert wanted.literal == b"longest piece"
    assert wanted.others == (b"ax", b"ey")
    assert wanted.admits(b"... AX ... EY")
    assert not wanted.admits(b"... AX ...\r")
    for hidden in (rb"\u0045y", rb"\u0009y", b"\ty"):
        assert wanted.admits(b"... AX ... " + hidden)


def test_without_the_extra_the_standard_library_searches(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(matchers, "import_module", missing)
    matchers.has_hyperscan.cache_clear()
    try:
        assert isinstance(matchers.matcher_for(derive("needle")), matchers.PlainMatcher)
    finally:
        matchers.has_hyperscan.cache_clear()
    assert isinstance(matchers.matcher_for(derive('""}}')), matchers.EveryByte)


@pytest.mark.skipif(not matchers.has_hyperscan(), reason="needs the extra `fast`")
def test_with_the_extra_it_searches_for_all_but_the_shortest():
    assert isinstance(matchers.matcher_for(derive("needle")), matchers.HyperscanMatcher)
    assert isinstance(matchers.matcher_for(derive("\u4e2d")), matchers.HyperscanMatcher)
    assert isinstance(matchers.matcher_for(derive("xy")), matchers.PlainMatcher)


# --- nothing is lost ---

CALL = b'{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":%s}}'
USER = b'{"type":"response_item","payload":{"type":"message","role":"user","content":[%s]}}'


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("tab", CALL % rb'{"a":"\u0009ab"}'),
        ("tab", CALL % b'{"a":"\tab"}'),
        ("fan", CALL % rb'{"a":"\u000Can"}'),
        ("1xy", CALL % b'{"a":"\x01xy"}'),
        ("0001xy", CALL % b'{"a":"\x01xy"}'),
        ("poke", CALL % '{"a":"po\u212ae"}'.encode()),
        ("poke", CALL % rb'{"a":"po\u212Ae"}'),
        ("pole", CALL % rb'{"a":"p\u006fle"}'),
        ("pole", CALL % rb'{"\u0070\u006F\u006c\u0065":1}'),
        ("sum/up", CALL % rb'{"a":"sum\/up"}'),
        ('{"a":"b","c"', CALL % b'{ "a" : "b" , "c" : 1 }'),
        ("\ufffd", CALL % b'{"a":"\xff"}'),
        ("\ufffdab", CALL % rb'{"a":"\ud83dab"}'),
        ("document", USER % b'{"type":"input_file"}'),
        ("[doc", USER % rb'{"type":"input_f\u0069le"}'),
        ("[image]", USER % b'{"type":"input_image"}'),
        ("😀", USER % rb'{"type":"input_text","text":"\ud83D\uDE00"}'),
        ("éa", USER % rb'{"type":"input_text","text":"\u00C9A"}'),
    ],
)
@pytest.mark.parametrize("matcher_type", MATCHERS)
def test_a_text_that_its_bytes_hide_is_found(tmp_path, matcher_type, query, line):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"{}\n" + line + b"\n{}\n")
    assert any(query in fold(text) for text in texts_of("codex", line, 3))
    assert candidates(path, query, matcher_type, UNKNOWN)[3] == line
    known = KnownEscapes(escape_kinds(path.read_bytes()), path.stat().st_size)
    assert candidates(path, query, matcher_type, known)[3] == line


def test_a_shell_command_is_found_by_its_prompt(tmp_path):
    path = tmp_path / "t.jsonl"
    line = b'{"type":"message","message":{"role":"bashExecution","command":"gis"}}'
    path.write_bytes(line)
    assert texts_of("pi", line, 0) == ["$ gis"]
    for query in ("$ gis", " gis", "$ g", "$"):
        assert candidates(path, query, matchers.PlainMatcher, UNKNOWN) == {0: line}, query


def lines_of(data):
    offset = 0
    for line in data.split(b"\n"):
        yield offset, line
        offset += len(line) + 1


def texts_of(tool, line, offset):
    return [message.text for message in BY_TOOL[tool].messages(line, offset, Context())[0]]


def candidates(path, query, matcher_type, known):
    wanted = derive(query)
    matcher = matchers.EveryByte() if wanted.takes_everything else matcher_type(wanted)
    with open_transcript(str(path), str(path.parent)) as opened:
        found = candidate_lines(TranscriptFile(opened, NEVER), 0, matcher, known)
        lines = [line for line in found if isinstance(line, Line)]
    return {line.offset: line.data for line in lines if wanted.admits(line.data)}


def queries(texts, random):
    for text in texts:
        start = random.randrange(len(text) + 1)
        cut = text[start : start + random.choice((1, 2, 3, 5, 8, 200))]
        yield "".join(random.choice((c, c.upper(), c.lower())) for c in cut)
    yield wild.text(random)


def check(path, random, matcher_type):
    """Compare with looking into every message; return how many lines matched."""
    tool = random.choice(sorted(BY_TOOL))
    data = wild.transcript(tool, random)
    path.write_bytes(data)
    texts = {offset: texts_of(tool, line, offset) for offset, line in lines_of(data)}
    known = random.choice((UNKNOWN, KnownEscapes(escape_kinds(data), len(data))))
    matched = 0
    for query in queries([t for those in texts.values() for t in those], random):
        folded = fold(query.strip())
        if folded:
            found = candidates(path, folded, matcher_type, known)
            for offset, line in lines_of(data):
                if any(folded in fold(text) for text in texts[offset]):
                    matched += 1
                    assert found.get(offset) == line, (query, derive(folded), known, line)
    return matched


@pytest.mark.parametrize("matcher_type", MATCHERS)
@given(seed=st.integers(0, 2**64))
@settings(max_examples=250, deadline=None)
def test_no_line_that_matches_is_left_out(tmp_path_factory, matcher_type, seed):
    path = tmp_path_factory.getbasetemp() / "wild.jsonl"
    check(path, Random(seed), matcher_type)


def test_the_random_transcripts_have_something_to_find(tmp_path):
    random = Random(1)
    assert sum(check(tmp_path / "w.jsonl", random, matchers.PlainMatcher) for _ in range(50)) > 80
