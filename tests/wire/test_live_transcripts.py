"""Following a transcript against a real server (contract rules 1 to 5 and 9)."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import grpc
import pytest

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue_grpc import limits
from tests.wire import homes
from tests.wire.live import follow_transcript, places, reading, texts


def test_following_nothing_is_not_found(flue):
    request = ai.ReadTranscriptRequest(tool="claude", id="nobody", follow=True)
    with reading(flue.index.ReadTranscript(request)) as reader:
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")


def test_a_transcript_comes_with_its_backlog_then_as_it_grows(flue, transcript, wait_until):
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        assert texts(reader) == ["question 1", "yes"]
        transcript(homes.user_line(1, "more", 2))
        wait_until(lambda: len(texts(reader)) == 3)
        half = homes.user_line(1, "in two pieces", 3)
        transcript(half[:50])
        transcript(half[50:])
        wait_until(lambda: len(texts(reader)) == 4)
    assert texts(reader) == ["question 1", "yes", "more", "in two pieces"]
    last = reader.responses[-1].page
    assert last.next == transcript.path.stat().st_size
    assert all(r.page.revision and r.page.next for r in reader.responses)


def test_whole_objects_without_a_newline_come_at_once_and_what_is_glued_to_them_later(
    flue, transcript, wait_until
):
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        start = transcript.path.stat().st_size
        transcript(homes.user_line(1, "first", 2).rstrip("\n"))
        wait_until(lambda: len(texts(reader)) == 3)
        transcript(homes.user_line(1, "second", 3))
        wait_until(lambda: len(texts(reader)) == 4)
    assert texts(reader)[2:] == ["first", "second"]
    assert places(reader)[2:] == [(start, 0), (start, 1)]


def test_a_transcript_goes_on_from_offset_and_revision_across_a_restart(
    flue, transcript, wait_until
):
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
    page = reader.responses[-1].page
    flue.stop()
    transcript(homes.user_line(1, "while away", 2))
    flue.start().swept()
    with follow_transcript(flue, offset=page.next, revision=page.revision) as again:
        wait_until(lambda: again.caught_up)
        transcript(homes.user_line(1, "and now", 3))
        wait_until(lambda: len(texts(again)) == 2)
    assert texts(again) == ["while away", "and now"]


def test_the_limit_of_a_transcript_follow_stops_before_the_line_that_passes_it(
    flue, transcript, wait_until
):
    with follow_transcript(flue, limit=3) as reader:
        wait_until(lambda: reader.caught_up)
        glued = homes.user_line(1, "a", 2).rstrip("\n") + homes.user_line(1, "b", 3)
        transcript(glued)
        assert reader.end() is None
    assert texts(reader) == ["question 1", "yes"]
    with follow_transcript(flue, limit=2) as reader:
        assert reader.end() is None
    assert texts(reader) == ["question 1", "yes"]


@pytest.mark.parametrize("harm", ["replaced", "cut", "rewritten in place"])
def test_a_follower_learns_that_what_it_has_was_replaced(flue, transcript, wait_until, harm):
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        path = transcript.path
        other = homes.user_line(1, "QUESTION 1") + homes.reply_line(1, "no!")
        if harm == "replaced":
            path.with_suffix(".new").write_text(other)
            path.with_suffix(".new").rename(path)
        elif harm == "cut":
            os.truncate(path, 10)
        else:
            path.write_text(other + homes.user_line(1, "more", 2))
        assert reader.end() == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_GONE")


def test_a_follower_learns_that_its_transcript_is_gone(flue, transcript, wait_until):
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        transcript.path.unlink()
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")


def test_a_follower_learns_that_another_file_has_its_id_now(flue, transcript, wait_until):
    path = transcript.path
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        rival = path.parent.parent / "-srv-elsewhere" / path.name
        rival.parent.mkdir()
        rival.write_text(path.read_text() + homes.user_line(1, "of the newer file", 2))
        os.utime(path, (1, 1))
        assert reader.end() == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_GONE")
    with follow_transcript(flue) as again:
        wait_until(lambda: again.caught_up)
        assert texts(again) == ["question 1", "yes", "of the newer file"]


def test_a_follower_learns_that_its_directory_leads_elsewhere(flue, transcript, wait_until):
    root = transcript.path.parents[2]
    elsewhere = root.with_name("elsewhere")
    (elsewhere / "projects").mkdir(parents=True)
    real = root.rename(root.with_name("real"))
    root.symlink_to(real)
    flue.swept()
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        root.unlink()
        root.symlink_to(elsewhere)
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")


def test_a_follower_goes_with_a_transcript_that_is_moved(flue, transcript, wait_until):
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        folder = transcript.path.parent.parent / "-srv-elsewhere"
        folder.mkdir()
        moved = transcript.path.rename(folder / transcript.path.name)
        with moved.open("a") as file:
            file.write(homes.user_line(1, "after the move", 2))
        wait_until(lambda: len(texts(reader)) == 3)
    assert texts(reader) == ["question 1", "yes", "after the move"]


# Appends a file to another in odd pieces, and says when half of it is written.
WRITER = """
import random, sys
source, target, seed = sys.argv[1:]
body, dice, place, told = open(source, "rb").read(), random.Random(int(seed)), 0, False
while place < len(body):
    piece = dice.choice((1, 7, 80, 2_000, 60_000, 3_000_000))
    with open(target, "ab") as file:
        file.write(body[place : place + piece])
    place += piece
    if place * 2 >= len(body) and not told:
        told = True
        print("half", flush=True)
"""


def test_nothing_is_lost_or_doubled_while_a_program_writes_in_odd_pieces(
    flue, transcript, wait_until, tmp_path
):
    dice = random.Random(7)
    said = [f"{number} " + "é" * dice.randrange(300) for number in range(150)]
    said[60] = "long " + "x" * 10_000_000
    lines = [homes.user_line(1, text, number + 2) for number, text in enumerate(said)]
    lines[61] = lines[61].rstrip("\n")  # the next object is glued to it
    lines[80] = '{"type":"user","mess\n'  # a crash in the middle of a line
    expected = ["question 1", "yes", *said[:80], *said[81:]]
    expected[62] = said[60][: limits.PAGE_MESSAGE_TEXT_BYTES]
    source = tmp_path / "lines"
    source.write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-c", WRITER, str(source), str(transcript.path), "7"]
    with follow_transcript(flue) as early:
        wait_until(lambda: early.caught_up)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline() == b"half\n"
            with follow_transcript(flue) as late:
                assert writer.wait(60) == 0
                wait_until(lambda: min(len(texts(early)), len(texts(late))) >= len(expected))
    assert texts(early) == expected
    assert texts(late) == expected
    assert places(early) == places(late)
    cut = [m for r in early.responses for m in r.page.messages if m.truncated]
    assert [message.text_size for message in cut] == [len(said[60])]
    whole = flue.index.ReadTranscript(
        ai.ReadTranscriptRequest(tool="claude", id=homes.session_id(1))
    )
    assert places(early) == [(m.offset, m.index) for r in whole for m in r.page.messages]
