"""How much is read, decoded and held, which unlike times is the same on every machine."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from flue_grpc import limits
from tests.unit.agentindex.notes import located, note
from tests.unit.agentindex.notes_library import Library
from tests.unit.agentindex.page_reading import BOTH_WAYS, read
from tests.unit.agentindex.test_intake import Shelf, log
from tests.unit.agentindex.work import Work


def page_bytes(path, lines, direction, monkeypatch):
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    found = located(path)
    offset = None if direction == "backward" else 0
    with monkeypatch.context() as patch:
        work = Work(patch, path.parent)
        assert len(read(found, offset=offset, direction=direction).messages) == 100
    return work.read


@BOTH_WAYS
def test_a_page_reads_as_much_of_a_small_transcript_as_of_a_large_one(
    tmp_path, monkeypatch, direction
):
    line = note("x" * 1000)
    small = page_bytes(tmp_path / "small", [line] * 500, direction, monkeypatch)
    large = page_bytes(tmp_path / "large", [line] * 20_000, direction, monkeypatch)
    assert small == large
    assert large < 100 * len(line) + 5 * limits.FIRST_READ_BYTES


@pytest.mark.parametrize("query", ["needle", "NEEDLE", 'a "needle"', "nééédle"])
def test_a_search_decodes_only_the_lines_that_can_match(tmp_path, query):
    library = Library(tmp_path)
    text = f"with {query} in it"
    library.write("a", *[note("hay" * 100)] * 400, note(text), *[note("more hay")] * 400)
    library.write("b", *[note("hay")] * 400, note(text), note(text))
    assert len(library.hits(query)) == 3
    assert library.adapter.parsed == 3


def test_a_search_without_a_hit_decodes_nothing(tmp_path):
    library = Library(tmp_path)
    library.write("a", *[note("hay", "straw")] * 400)
    assert library.hits("needle") == []
    assert library.adapter.parsed == 0


def test_a_sweep_holds_no_more_of_many_lines_than_of_few(tmp_path):
    def peak(name, count):
        shelf = Shelf(tmp_path / name)
        body = "x" * 10_000
        lines = (log(t=number, key=body) for number in range(count))
        shelf.home.write("logs/a/x.jsonl", *lines)
        gc.collect()
        tracemalloc.start()
        try:
            shelf.take()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            shelf.close()

    few = peak("few", 100)
    assert peak("many", 2_000) < few + limits.MIB
