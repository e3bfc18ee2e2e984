"""Live calls while servers are killed, directories move, and clients stall (rules 1 to 5, 9)."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import grpc
import pytest

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2 as st
from flue.store.v1 import store_pb2_grpc
from tests.wire import homes
from tests.wire.live import WAIT, events, follow_transcript, texts, watching
from tests.wire.process import PATIENCE
from tests.wire.security.test_http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    Raw,
    frame,
    headers,
    message,
)

LIVES, LINES = 3, 60
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 50),
]


class Resuming:
    """Follows through any number of servers, on a thread of its own."""

    def __init__(self, last):
        self.taken = []
        self.codes = set()
        self.server = None
        self._last = last
        self._changed = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def use(self, server):
        with self._changed:
            self.server = server
            self._changed.notify_all()

    def _run(self):
        while self._last not in self.taken:
            server = self.server
            try:
                with grpc.insecure_channel(f"unix:{server.socket}", OPTIONS) as channel:
                    self._follow(channel)
            except grpc.RpcError as error:
                self.codes.add(error.code())
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    self._await_another(server)

    def _await_another(self, lost):
        with self._changed:
            assert self._changed.wait_for(lambda: self.server is not lost, PATIENCE)


class OfTranscript(Resuming):
    place: ClassVar = {}

    def _follow(self, channel):
        request = ai.ReadTranscriptRequest(
            tool="claude", id=homes.session_id(1), follow=True, **self.place
        )
        stub = agent_index_pb2_grpc.AgentIndexStub(channel)
        for response in stub.ReadTranscript(request):
            self.taken += [m.text for m in response.page.messages]
            self.place = {"offset": response.page.next, "revision": response.page.revision}
            if self._last in self.taken:
                return


class OfSession(Resuming):
    token = ""

    def _follow(self, channel):
        request = st.ListMessagesRequest(session_id="s", follow=True, page_token=self.token)
        stub = store_pb2_grpc.StoreStub(channel)
        for response in stub.ListMessages(request):
            self.taken += [m.content for m in response.messages]
            self.token = response.next_page_token
            if self._last in self.taken:
                return


def test_followers_lose_and_double_nothing_across_kills_of_the_server(run):
    server = run("serve").ready()
    store = store_pb2_grpc.StoreStub(server.channel())
    store.CreateSession(st.CreateSessionRequest(id="s"), timeout=PATIENCE)
    homes.write_session(server.home, 1, [homes.user_line(1, "n0")])
    wanted = [f"n{number}" for number in range(LIVES * LINES)]
    followers = [kind(wanted[-1]) for kind in (OfTranscript, OfSession, OfTranscript)]
    for life in range(LIVES):
        if life:
            server = run("serve").ready()
            store = store_pb2_grpc.StoreStub(server.channel())
        for follower in followers:
            follower.use(server)
            if not life:
                follower.thread.start()
        for number in range(life * LINES, (life + 1) * LINES):
            if number:
                with homes.transcript_path(server.home, 1).open("a") as file:
                    file.write(homes.user_line(1, f"n{number}", number))
            body = st.Message(role="user", content=f"n{number}")
            store.AppendMessage(
                st.AppendMessageRequest(session_id="s", message=body), timeout=PATIENCE
            )
        if life < LIVES - 1:
            server.kill()
    for follower in followers:
        follower.thread.join(PATIENCE)
    assert [follower.taken for follower in followers] == [wanted] * 3
    # A transcript is not found before the first sweep has met it.
    may_be = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND}
    assert set().union(*(follower.codes for follower in followers)) <= may_be


def test_a_directory_that_is_renamed_takes_its_followers_along(flue, transcript, wait_until):
    folder = transcript.path.parent
    with follow_transcript(flue) as reader, watching(flue) as watch:
        wait_until(lambda: reader.caught_up and watch.caught_up)
        moved = folder.rename(folder.with_name("-srv-moved"))
        with (moved / transcript.path.name).open("a") as file:
            file.write(homes.user_line(1, "after the move", 2))
        wait_until(lambda: len(texts(reader)) == 3)
        moved.rename(flue.home / "elsewhere")
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")
        wait_until(lambda: events(watch)[-1] == ("REMOVED", homes.session_id(1)))


def test_a_root_that_appears_as_a_link_is_followed(flue, wait_until):
    elsewhere = flue.home / "elsewhere"
    homes.write_session(elsewhere, 1)
    with watching(flue) as watch:
        wait_until(lambda: watch.caught_up)
        (flue.home / ".claude").symlink_to(elsewhere / ".claude")
        wait_until(lambda: events(watch) == [("ADDED", homes.session_id(1))])
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
        with homes.transcript_path(elsewhere, 1).open("a") as file:
            file.write(homes.user_line(1, "more", 2))
        wait_until(lambda: len(texts(reader)) == 3)


def test_it_is_not_building_for_ever_while_a_program_writes(make_flue, wait_until):
    flue = make_flue(sweep_interval_seconds=3600)
    homes.write_session(flue.home, 1)
    flue.start().swept()
    index = flue.server.services.index
    wait_until(lambda: index.file_events == "events" and not index.building)
    for number in range(2, 30):
        with homes.transcript_path(flue.home, 1).open("a") as file:
            file.write(homes.user_line(1, f"n{number}", number))
        (response,) = flue.index.Snapshot(ai.SnapshotRequest())
        assert not response.building
    wait_until(lambda: index.find("claude", homes.session_id(1)).message_count == 30)


class Stalled:
    """Connections that follow a transcript and give the server no room to answer."""

    def __init__(self):
        self._open = []

    def __call__(self, flue, count):
        request = ai.ReadTranscriptRequest(tool="claude", id=homes.session_id(1), follow=True)
        no_window = frame(SETTINGS, payload=(4).to_bytes(2, "big") + bytes(4))
        call = headers("/flue.agentindex.v1.AgentIndex/ReadTranscript")
        for _ in range(count):
            self._open.append(Raw(flue.socket))
            self._open[-1].send(
                PREFACE + no_window,
                frame(HEADERS, END_HEADERS, 1, call),
                frame(DATA, END_STREAM, 1, message(request.SerializeToString())),
            )

    def close(self):
        while self._open:
            self._open.pop().close()


@pytest.fixture
def stalled():
    made = Stalled()
    yield made
    made.close()


def left_open():
    """Name the sockets and transcripts that this process, the server's too, has open."""
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # it was for this very listing
            targets.append(str(descriptor.readlink()))
    return sorted(name for name in targets if name.startswith("socket:") or ".jsonl" in name)


def test_500_connections_that_stall_keep_nobody_waiting(make_flue, stalled, wait_until):
    flue = make_flue(stall_seconds=5.0)
    homes.write_session(flue.home, 1)
    flue.start().swept()
    runtime = flue.server.services.runtime
    live = runtime.budgets.by_kind["live"]
    request = ai.ResolveRequest(tool="claude", id=homes.session_id(1))
    flue.index.Resolve(request)
    before = left_open()
    stalled(flue, 500)
    wait_until(lambda: live.refused)  # every place is taken by a stalled one
    for _ in range(20):
        flue.index.Resolve(request, timeout=WAIT)
        assert list(flue.index.Snapshot(ai.SnapshotRequest(), timeout=WAIT))
    wait_until(lambda: live.used == 0)  # each was cut off, though its connection is open
    assert flue.server.services.index.followed.count == 0
    with follow_transcript(flue) as reader:
        wait_until(lambda: reader.caught_up)
    wait_until(lambda: runtime.guard.watching == 0)
    stalled.close()
    wait_until(lambda: left_open() == before)
