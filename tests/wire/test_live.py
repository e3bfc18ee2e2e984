"""Follow and Watch against a real server (contract rules 1 to 5 and 9)."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from contextlib import contextmanager

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from flue_grpc import limits
from tests.wire import homes

WAIT = 20.0


class Reader:
    """Takes responses on a thread of its own, as a live client does."""

    def __init__(self, call) -> None:
        self.call = call
        self.responses = []
        self.error = None
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for response in self.call:
                self.responses.append(response)
        except grpc.RpcError as error:
            self.error = error
        finally:
            self.is_over.set()

    @property
    def caught_up(self):
        return any(response.caught_up for response in self.responses)

    def end(self):
        """Return the code and reason that the stream ended with, None for OK."""
        assert self.is_over.wait(WAIT)
        if self.error is None:
            return None
        info = error_details_pb2.ErrorInfo()
        status = rpc_status.from_call(self.error)
        status.details[0].Unpack(info)
        return self.error.code(), info.reason

    def close(self):
        self.call.cancel()
        assert self.is_over.wait(WAIT)
        self._thread.join()


@contextmanager
def reading(call):
    reader = Reader(call)
    try:
        yield reader
    finally:
        reader.close()


def contents(reader):
    return [message.content for r in reader.responses for message in r.messages]


def texts(reader):
    return [message.text for r in reader.responses for message in r.page.messages]


def places(reader):
    return [(m.offset, m.index) for r in reader.responses for m in r.page.messages]


def append(flue, *names, session="s"):
    for name in names:
        message = st.Message(role="user", content=name)
        flue.store.AppendMessage(st.AppendMessageRequest(session_id=session, message=message))


@pytest.fixture
def session(flue):
    flue.store.CreateSession(st.CreateSessionRequest(id="s", title="t"))
    append(flue, "one", "two")
    return flue


def follow_session(flue, **fields):
    return reading(
        flue.store.ListMessages(st.ListMessagesRequest(session_id="s", follow=True, **fields))
    )


def test_a_session_comes_with_its_backlog_then_as_it_grows(session, wait_until):
    with follow_session(session) as reader:
        wait_until(lambda: reader.caught_up)
        assert contents(reader) == ["one", "two"]
        append(session, "three")
        wait_until(lambda: len(contents(reader)) == 3)
        append(session, "four", "five")
        wait_until(lambda: len(contents(reader)) == 5)
    assert contents(reader) == ["one", "two", "three", "four", "five"]
    flags = [response.caught_up for response in reader.responses]
    assert flags == sorted(flags), "once reached, the present stays reached"
    assert all(response.next_page_token for response in reader.responses)
    marker = next(response for response in reader.responses if response.caught_up)
    assert not marker.messages


def test_a_session_goes_on_from_a_token_across_a_restart(session, wait_until):
    with follow_session(session) as reader:
        wait_until(lambda: reader.caught_up)
    token = reader.responses[-1].next_page_token
    session.restart()
    append(session, "three")
    with follow_session(session, page_token=token) as again:
        wait_until(lambda: again.caught_up)
        append(session, "four")
        wait_until(lambda: len(contents(again)) == 2)
    assert contents(again) == ["three", "four"]


def test_the_limit_of_a_follow_counts_backlog_and_news(session, wait_until):
    with follow_session(session, limit=3) as reader:
        wait_until(lambda: reader.caught_up)
        append(session, "three", "four")
        assert reader.end() is None
    assert contents(reader) == ["one", "two", "three"]
    with follow_session(session, limit=1, after_id=1) as reader:
        assert reader.end() is None
    assert contents(reader) == ["two"]


def test_a_followed_session_that_is_deleted_is_not_found(session, wait_until):
    with follow_session(session) as reader:
        wait_until(lambda: reader.caught_up)
        session.store.DeleteSession(st.DeleteSessionRequest(id="s"))
        session.store.CreateSession(st.CreateSessionRequest(id="s"))
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")


def test_following_nothing_is_not_found(flue):
    with follow_session(flue) as reader:
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    request = ai.ReadTranscriptRequest(tool="claude", id="nobody", follow=True)
    with reading(flue.index.ReadTranscript(request)) as reader:
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")


def test_a_silent_follow_proves_that_it_lives(session, wait_until, monkeypatch):
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.01)
    with follow_session(session) as reader:
        wait_until(lambda: len(reader.responses) > 4)
        append(session, "three")
        wait_until(lambda: len(contents(reader)) == 3)
        wait_until(lambda: not reader.responses[-1].messages)
    assert reader.responses[-1].caught_up
    with follow_session(session, page_token=reader.responses[-1].next_page_token) as again:
        wait_until(lambda: again.caught_up)
        assert contents(again) == []


def test_omitted_images_stay_omitted_in_a_follow(session, wait_until):
    with follow_session(session, omit_images=True) as reader:
        wait_until(lambda: reader.caught_up)
        image = st.Message(role="user", content="look", images=["data:a", "data:b"])
        session.store.AppendMessage(st.AppendMessageRequest(session_id="s", message=image))
        wait_until(lambda: len(contents(reader)) == 3)
    assert list(reader.responses[-1].messages[0].images) == ["", ""]


def test_shutdown_ends_every_live_stream_with_a_reason(session, wait_until):
    homes.write_session(session.home, 1)
    session.swept()
    with (
        follow_session(session) as messages,
        reading(session.index.Watch(ai.WatchRequest())) as watch,
        follow_transcript(session) as transcript,
    ):
        wait_until(lambda: all(each.caught_up for each in (messages, watch, transcript)))
        server, session.server = session.server, None
        server.stop()
        draining = (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert [each.end() for each in (messages, watch, transcript)] == [draining] * 3
    session.channel.close()


def test_cancelled_follows_leave_nothing(session, wait_until):
    budget = session.server.services.runtime.budgets.by_kind
    for _ in range(200):
        call = session.store.ListMessages(st.ListMessagesRequest(session_id="s", follow=True))
        next(call)
        call.cancel()
    wait_until(lambda: not any(kind.used for kind in budget.values()))
    assert session.server.services.store.changes.followers == 0
    assert session.server.services.index.followed.count == 0


def follow_transcript(flue, number=1, **fields):
    request = ai.ReadTranscriptRequest(
        tool="claude", id=homes.session_id(number), follow=True, **fields
    )
    return reading(flue.index.ReadTranscript(request))


@pytest.fixture
def transcript(flue):
    """A transcript of two messages, and a function that adds bytes to it."""
    homes.write_session(flue.home, 1)
    flue.swept()
    path = homes.transcript_path(flue.home, 1)

    def write(text):
        with path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    write.path = path
    return write


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


def test_nothing_is_lost_or_doubled_while_a_program_writes_in_odd_pieces(
    flue, transcript, wait_until
):
    dice = random.Random(7)
    lines = [
        homes.user_line(1, f"{number} " + "é" * dice.randrange(300), number + 2)
        for number in range(150)
    ]
    lines[60] = homes.user_line(1, "long " + "x" * 10_000_000, 62)
    lines[61] = lines[61].rstrip("\n")  # the next object is glued to it
    lines[80] = '{"type":"user","mess\n'  # a crash in the middle of a line
    body = "".join(lines).encode()
    with follow_transcript(flue) as early:
        wait_until(lambda: early.caught_up)
        place = 0
        while place < len(body):
            piece = dice.choice((1, 7, 80, 2_000, 60_000, 3_000_000))
            transcript(body[place : place + piece])
            place += piece
        with follow_transcript(flue) as late:
            wait_until(lambda: len(texts(early)) == len(texts(late)) == 151)
    assert texts(early) == texts(late)
    assert places(early) == places(late)
    whole = flue.index.ReadTranscript(
        ai.ReadTranscriptRequest(tool="claude", id=homes.session_id(1))
    )
    assert places(early) == [(m.offset, m.index) for r in whole for m in r.page.messages]


def watching(flue, **fields):
    return reading(flue.index.Watch(ai.WatchRequest(**fields)))


def events(reader):
    return [
        (ai.EventType.Name(event.type).removeprefix("EVENT_TYPE_"), event.summary.id)
        for response in reader.responses
        for event in response.events
    ]


def test_a_watch_begins_with_the_present_and_tells_of_every_change(flue, wait_until):
    for number in (1, 2):
        homes.write_session(flue.home, number)
    flue.swept()
    one, two, three = map(homes.session_id, (1, 2, 3))
    with watching(flue) as reader:
        wait_until(lambda: reader.caught_up)
        assert events(reader) == [("ADDED", two), ("ADDED", one)]
        homes.write_session(flue.home, 3)
        wait_until(lambda: ("ADDED", three) in events(reader))
        with homes.transcript_path(flue.home, 1).open("a") as file:
            file.write(homes.user_line(1, "more", 2))
        wait_until(lambda: ("UPDATED", one) in events(reader))
        homes.transcript_path(flue.home, 2).unlink()
        wait_until(lambda: ("REMOVED", two) in events(reader))
    removed = [e for r in reader.responses for e in r.events if e.type == ai.EVENT_TYPE_REMOVED]
    assert removed == [
        ai.SessionEvent(type=ai.EVENT_TYPE_REMOVED, summary=ai.Summary(tool="claude", id=two))
    ]
    updated = [e for r in reader.responses for e in r.events if e.summary.id == one]
    assert updated[-1].summary.message_count == 3


def test_a_watch_hears_of_directories_that_appear_while_it_runs(flue, wait_until):
    with watching(flue) as reader:
        wait_until(lambda: reader.caught_up)
        homes.write_session(flue.home, 1)  # not even the root was there
        wait_until(lambda: events(reader) == [("ADDED", homes.session_id(1))])
        nested = flue.home / ".codex/sessions/2026/07/02"
        nested.mkdir(parents=True)
        meta = {"type": "session_meta", "payload": {"id": "x", "cwd": "/srv/work"}}
        prompt = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        item = {"type": "response_item", "payload": {"type": "message", **prompt}}
        name = f"rollout-2026-07-02T08-00-00-{homes.session_id(9)}.jsonl"
        (nested / name).write_text("".join(json.dumps(line) + "\n" for line in (meta, item)))
        wait_until(lambda: ("ADDED", homes.session_id(9)) in events(reader))


def test_a_watch_shows_only_what_was_asked_for(flue, wait_until):
    homes.write_session(flue.home, 1)
    homes.write_session(flue.home, 2, [homes.user_line(2, "elsewhere", cwd="/srv/other")])
    flue.swept()
    with (
        watching(flue, cwd="/srv/other") as here,
        watching(flue, tools=["codex"]) as codex,
        watching(flue, tools=["nobody"]) as nobody,
    ):
        wait_until(lambda: all(each.caught_up for each in (here, codex, nobody)))
    assert events(here) == [("ADDED", homes.session_id(2))]
    assert events(codex) == events(nobody) == []


def test_a_watch_shows_subagents_only_when_asked(flue, wait_until):
    homes.write_session(flue.home, 1)
    below = homes.transcript_path(flue.home, 1).with_suffix("") / "subagents"
    below.mkdir(parents=True)
    (below / "agent-a.jsonl").write_text(homes.user_line(1, "do it"))
    flue.swept()
    child = f"{homes.session_id(1)}.agent-a"
    with watching(flue) as plain, watching(flue, include_subagents=True) as all_of_them:
        wait_until(lambda: plain.caught_up and ("ADDED", child) in events(all_of_them))
    assert events(plain)[:1] == [("ADDED", homes.session_id(1))]
    assert all(name != child for _, name in events(plain))


def test_changes_of_one_session_are_merged_for_a_slow_watcher(flue, transcript, wait_until):
    index = flue.server.services.index
    from flue_grpc.agentindex.snapshots import SnapshotFilter
    from flue_grpc.cancel import NEVER

    watch = index.watch(SnapshotFilter())
    assert len(list(watch.backlog(NEVER))) == 1
    for number in range(5):
        transcript(homes.user_line(1, f"n{number}", number + 2))
        wait_until(
            lambda count=3 + number: (
                index.find("claude", homes.session_id(1)).message_count == count
            )
        )
    merged = list(watch.changes(NEVER))
    assert [type(event).__name__ for event in merged] == ["Updated"]
    assert merged[0].summary.message_count == 7
    watch.close()


def test_without_file_events_looking_at_the_files_takes_their_place(
    make_flue, wait_until, monkeypatch
):
    import watchfiles

    def exhausted(*_paths, **_options):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(watchfiles, "watch", exhausted)
    monkeypatch.setattr(limits, "POLL_SECONDS", 0.005)
    flue = make_flue()
    homes.write_session(flue.home, 1)
    flue.start().swept()
    wait_until(lambda: flue.server.services.index.file_events == "polling")
    with follow_transcript(flue) as reader, watching(flue) as watch:
        wait_until(lambda: reader.caught_up and watch.caught_up)
        with homes.transcript_path(flue.home, 1).open("a") as file:
            file.write(homes.user_line(1, "more", 2))
        wait_until(lambda: len(texts(reader)) == 3)
        wait_until(lambda: ("UPDATED", homes.session_id(1)) in events(watch))
        shutil.rmtree(homes.transcript_path(flue.home, 1).parent)
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")


def test_many_followers_hear_of_every_message(session, wait_until):
    followers = [
        Reader(session.store.ListMessages(st.ListMessagesRequest(session_id="s", follow=True)))
        for _ in range(100)
    ]
    wait_until(lambda: all(reader.caught_up for reader in followers))
    append(session, "three", "four")
    wait_until(lambda: all(len(contents(reader)) == 4 for reader in followers))
    for reader in followers:
        reader.close()
    assert {tuple(contents(reader)) for reader in followers} == {("one", "two", "three", "four")}
