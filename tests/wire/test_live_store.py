"""Following a session of the Store against a real server (contract rules 1 to 5 and 9)."""

from __future__ import annotations

import grpc

from flue.store.v1 import store_pb2 as st
from flue_grpc import limits
from tests.wire import homes
from tests.wire.live import (
    Reader,
    append,
    contents,
    follow_session,
    follow_transcript,
    watching,
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
        watching(session) as watch,
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
