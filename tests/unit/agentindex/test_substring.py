from __future__ import annotations

import pytest
from msgspec.structs import replace

from flue_grpc import limits
from flue_grpc.agentindex import pages
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.substring import SubstringSearch, search
from flue_grpc.cancel import NEVER
from flue_grpc.errors import EmptyQueryError, QueryTooLongError
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.notes_library import Library, found, run


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path)


def test_hits_come_newest_session_first_then_in_file_order(library):
    library.write("b", note("red"), note("blue", "RED"), note("red"))
    library.write("c", note("x"))
    library.write("a", note("Reddish"))
    first = len(note("red")) + 1
    second = first + len(note("blue", "RED")) + 1
    assert found(library.hits("red")) == [
        ("b", 0, 0),
        ("b", first, 1),
        ("b", second, 0),
        ("a", 0, 0),
    ]


def test_a_hit_tells_its_session_its_message_and_its_place(library):
    text = "é " * 100 + "the Needle, and the needle again" + " z" * 100
    library.write("s", note("a"), note("b", text))
    (hit,) = library.hits("NEEDLE")
    offset = len(note("a")) + 1
    assert (hit.tool, hit.id, hit.cwd, hit.title) == ("notes", "s", "/home/dev/notes", "Title of s")
    assert (hit.role, hit.kind, hit.ts, hit.offset, hit.index) == (
        "assistant",
        "text",
        offset,
        offset,
        1,
    )
    whole, shown = text.encode(), hit.snippet.encode()
    assert whole[hit.text_offset : hit.text_offset + 6] == b"Needle"
    assert [shown[a:b] for a, b in hit.ranges] == [b"Needle", b"needle"]


def test_a_message_is_one_hit_by_its_first_match(library):
    library.write("s", note("xx red red red"))
    (hit,) = library.hits("red")
    assert hit.text_offset == 3


def test_a_hit_pages_to_its_message(library):
    path = library.write("s", note("a"), note("b", "red"))
    (hit,) = library.hits("red")
    page = pages.read_page(located(path), hit.offset, "forward", 1, "", NEVER)
    assert page.messages[hit.index].text == "red"


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        ("  red\n", "bored", True),
        ("red blue", "red  blue", False),
        ("ⱥ", "x Ⱥ", True),
        ("Ⱥ", "x ⱥ", True),
        ("kelvin", "\u212aelvin", True),
        ("\u212aelvin", "KELVIN", True),
        ("ss", "ß", False),
        ("ẞ", "ß", True),
        ("i", "İ", False),
        ("İ", "İ", True),
        ("σ", "ΟΔΟΣ", True),
        ("ς", "ΟΔΟΣ", False),
        ("é", "e\u0301", False),
        ('say "hi"', 'I say "hi"', True),
        ("a\\b", "a\\b", True),
        ("a\nb", "a\nb", True),
        ("\ufffd", "a\0b", True),
        ("😀", "x😀", True),
        ("_", "a_b", True),
    ],
)
def test_a_match_is_literal_but_for_case(library, query, text, matches):
    library.write("s", note(text))
    assert len(library.hits(query)) == matches


def test_the_whole_text_is_searched_not_what_a_page_shows(library):
    library.write("s", note("x" * 400_000 + "red" + "x" * 70_000 + "blue"))
    assert library.hits("red")[0].text_offset == 400_000
    assert library.hits("XBLUE")[0].text_offset == 470_002


@pytest.mark.parametrize("query", ["", " \t\n", "\u2003"])
def test_a_blank_query_is_refused_at_once(library, query):
    with pytest.raises(EmptyQueryError):
        library.search(query)


def test_a_query_has_at_most_8_kib(library):
    library.search("é" * 4096)
    with pytest.raises(QueryTooLongError) as caught:
        library.search("é" * 4096 + "x")
    assert caught.value.metadata == {"limit": "8192"}


def test_filters_narrow_the_sessions(library):
    library.write("a", note("red"), cwd="/home/dev/a")
    library.write("b", note("red"), tool="other", cwd="/home/dev/a/b")
    library.write("c", note("red"), is_subagent=True, cwd="/home/dev/a")
    library.write("d", note("red"), message_count=0)
    assert [hit.id for hit in library.hits("red")] == ["a", "b"]
    assert [hit.id for hit in library.hits("red", include_subagents=True)] == ["a", "b", "c"]
    assert [hit.id for hit in library.hits("red", tools=("other", "none"))] == ["b"]
    assert library.hits("red", tools=("none",)) == []
    assert [hit.id for hit in library.hits("red", cwd="/home/dev/a")] == ["a"]


def test_filters_narrow_the_messages(library):
    lines = [note("red", "red"), note("red")]
    second = len(lines[0]) + 1
    library.write("a", *lines)
    everything = [("a", 0, 0), ("a", 0, 1), ("a", second, 0)]
    assert found(library.hits("red", roles=("assistant",))) == [("a", 0, 1)]
    assert found(library.hits("red", roles=("user", "assistant"))) == everything
    assert found(library.hits("red", kinds=("text",))) == everything
    assert library.hits("red", kinds=("thinking", "tool_call")) == []
    assert found(library.hits("red", since=second)) == everything[2:]
    assert found(library.hits("red", until=second)) == everything[:2]
    assert found(library.hits("red", since=0, until=second + 1)) == everything


def test_a_message_without_a_time_is_left_out_when_times_are_asked_for(library, monkeypatch):
    library.write("a", note("red"))
    original = library.adapter.messages

    def timeless(line, offset, context):
        messages, then = original(line, offset, context)
        return [replace(message, ts=None) for message in messages], then

    monkeypatch.setattr(library.adapter, "messages", timeless)
    assert len(library.hits("red")) == 1
    assert library.hits("red", since=0) == []
    assert library.hits("red", until=10**18) == []


def test_only_lines_that_may_match_are_parsed(library):
    library.write("a", *[note("x" * 100)] * 1000, note("the rare word"))
    before = library.adapter.parsed
    assert len(library.hits("rare word")) == 1
    assert library.adapter.parsed - before == 1


def test_a_search_that_is_closed_reads_no_further(library, monkeypatch):
    for name in "abcdef":
        library.write(name, note("red"))
    opened = []
    original = library.target

    def target(session):
        opened.append(session.summary.id)
        return original(session)

    request = SubstringSearch("red", HitFilter())
    steps = search(library.catalog, target, request, None, NEVER)
    next(steps)
    steps.close()
    assert opened == ["a"]


def test_a_line_above_the_cap_is_not_held(library, monkeypatch):
    monkeypatch.setattr("flue_grpc.agentindex.scanner.LINE_BYTES", 300_000)
    library.write("a", note("red" + "x" * 300_000), note("red" + "x" * 200_000), note("red"))
    assert [hit.text_offset for hit in library.hits("red")] == [0, 0]
    assert len(library.hits('""}}')) == 0
    assert [len(call) for call in run(library, "red", 1)] == [0, 1, 1]


def test_a_match_is_found_wherever_reading_stops_between_two_reads(library):
    window = limits.SCAN_WINDOW_BYTES
    for shift in range(-14, 3):
        fill = window - len(note()) + shift
        library.write("a", note("x" * fill + "needle", "é" * 3))
        assert len(library.hits("needle")) == 1, shift
        assert len(library.hits("ééé")) == 1
        library.write("a", note("x" * fill + "éé"))
        assert len(library.hits("éé")) == 1, shift
