from __future__ import annotations

import os

import pytest

from flue_grpc.agentindex.escapes import Escape, KnownEscapes
from flue_grpc.agentindex.substring import SubstringCursor
from flue_grpc.agentindex.transcript_file import TranscriptFile
from flue_grpc.listing import Placed
from tests.unit.agentindex.notes import note
from tests.unit.agentindex.notes_library import Library, found, hits


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path)


def test_files_that_cannot_be_read_are_skipped(library):
    for name in "abcde":
        library.write(name, note("red"))
    library.path("a").unlink()
    library.path("b").unlink()
    os.mkfifo(library.path("b"))
    library.path("c").unlink()
    library.path("c").mkdir()
    library.path("d").write_bytes(b"")
    assert [hit.id for hit in library.hits("red")] == ["e"]


def test_a_disk_that_fails_ends_its_file_only(library, monkeypatch):
    for name in "ab":
        library.write(name, note("red"))
    original = TranscriptFile.read
    failed = []

    def read(self, offset, size):
        if not failed:
            failed.append(offset)
            raise OSError(5, "broken disk")
        return original(self, offset, size)

    monkeypatch.setattr(TranscriptFile, "read", read)
    assert [hit.id for hit in library.hits("red")] == ["b"]


@pytest.mark.parametrize("change", ["cut", "grow", "vanish"])
def test_a_file_that_changes_while_it_is_searched_gives_what_it_has(library, change):
    path = library.write("a", *[note("red " + "x" * 1000)] * 400)
    library.write("b", note("red"))
    steps = library.search("red")
    next(steps)
    if change == "cut":
        os.truncate(path, 200_000)
    elif change == "vanish":
        path.unlink()
    else:
        with path.open("ab") as file:
            file.write(note("red") + b"\n")
    ids = [hit.id for hit in hits(steps)]
    assert ids[-1] == "b"
    assert ids.count("a") == {"cut": 195, "grow": 399, "vanish": 399}[change]


def test_the_unterminated_last_line_is_searched_up_to_its_last_whole_object(library):
    path = library.write("a")
    path.write_bytes(note("x") + b"\n" + note("red") + note("red") + note("red")[:-1])
    line = len(note("x")) + 1
    steps = list(library.search("red"))
    assert found(hits(steps)) == [("a", line, 0), ("a", line, 1)]
    with path.open("ab") as file:
        file.write(b"}\n")
    cursor = [step.cursor for step in steps if isinstance(step, Placed)][-1]
    assert found(library.hits("red", after=cursor)) == [("a", line, 2)]


def cursor_after(library, count, query="red"):
    steps = [step for step in library.search(query) if isinstance(step, Placed)]
    return steps[count - 1].cursor


def test_a_session_that_changes_before_it_is_reached_is_missed_never_given_twice(library):
    for name in "abc":
        library.write(name, note("red"))
    after = cursor_after(library, 1)
    library.write("b", note("red"), note("red"), ended_at=1)  # now behind the cursor
    library.write("a", note("red"), ended_at=2)
    assert [hit.id for hit in library.hits("red", after=after)] == ["c"]


def test_a_session_already_begun_goes_on_from_its_offset_wherever_it_moved(library):
    for name in "abc":
        library.write(name, note("red"), note("red"))
    after = cursor_after(library, 3)
    with library.path("b").open("ab") as file:
        file.write(note("red") + b"\n")
    library.index("b", ended_at=10**12)
    line = len(note("red")) + 1
    rest = [("b", line, 0), ("b", 2 * line, 0), ("c", 0, 0), ("c", line, 0)]
    assert found(library.hits("red", after=after)) == rest


def test_a_session_begun_that_was_replaced_or_removed_is_left(library):
    for name in "abc":
        library.write(name, note("red"), note("red"))
    after = cursor_after(library, 1)
    library.path("a").write_bytes(note("other red") + b"\n" + note("red") + b"\n")
    assert [hit.id for hit in library.hits("red", after=after)] == ["b", "b", "c", "c"]
    library.catalog.apply([], [str(library.path("a"))])
    assert [hit.id for hit in library.hits("red", after=after)] == ["b", "b", "c", "c"]


def test_a_cursor_of_a_session_that_is_gone_goes_on_behind_its_place(library):
    for name in "abc":
        library.write(name, note("red"))
    done = SubstringCursor(library.catalog.view().moment, 10**9 - 2, "b", "notes")
    library.catalog.apply([], [str(library.path("b"))])
    assert [hit.id for hit in library.hits("red", after=done)] == ["c"]


def test_new_sessions_are_left_to_the_next_search(library):
    library.write("a", note("red"))
    library.write("b", note("red"))
    after = cursor_after(library, 1)
    library.write("c", note("red"))
    assert [hit.id for hit in library.hits("red", after=after)] == ["b"]


def test_what_is_known_of_a_file_is_not_believed_of_what_it_became(library):
    path = library.write("a", note("p\u00e9le", "pole"))
    library.escapes = KnownEscapes(Escape.NONE, 10**6)
    hidden = path.read_bytes().replace(b"pole", rb"\u0070ole")
    assert len(library.hits("pole")) == 1
    path.write_bytes(hidden + b" " * 5)
    assert len(library.hits("pole")) == 1
    os.utime(path, ns=(0, 0))
    library.index("a")
    # Now the index is wrong about this very file, and is believed.
    assert library.hits("pole") == []
