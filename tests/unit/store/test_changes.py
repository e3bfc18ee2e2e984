from __future__ import annotations

import threading

import pytest

from flue_grpc.errors import BadRoleError, SessionNotFoundError
from flue_grpc.store.changes import Changes
from flue_grpc.store.values import Draft

SOON = 10.0


def test_an_append_wakes_the_followers_of_its_session_alone(store, session_id):
    store.create_session("other", "t")
    with (
        store.changes.subscribe(session_id) as first,
        store.changes.subscribe(session_id) as second,
        store.changes.subscribe("other") as other,
    ):
        store.append_message(session_id, Draft("user", "x"))
        assert first.wait(SOON)
        assert second.wait(SOON)
        assert not other.wait(0)
        assert not first.wait(0)


def test_what_a_follower_hears_of_can_be_read(store, session_id, items):
    seen = []
    is_caught_up = threading.Event()

    def follow():
        with store.changes.subscribe(session_id) as subscription:
            is_caught_up.set()
            while len(seen) < 20:
                subscription.wait(SOON)
                seen[:] = [message.content for message in items(store.list_messages(session_id))]

    follower = threading.Thread(target=follow)
    follower.start()
    is_caught_up.wait()
    for number in range(20):
        store.append_message(session_id, Draft("user", str(number)))
    follower.join()
    assert seen == [str(number) for number in range(20)]


def test_a_deletion_is_told_for_good(store, session_id):
    with store.changes.subscribe(session_id) as subscription:
        store.delete_session(session_id)
        assert subscription.wait(SOON)
        assert subscription.is_deleted
        store.create_session(session_id, "again")
        store.append_message(session_id, Draft("user", "x"))
        assert subscription.wait(SOON)
        assert subscription.is_deleted


def test_what_fails_wakes_nobody(store, session_id):
    with store.changes.subscribe(session_id) as subscription:
        with pytest.raises(BadRoleError):
            store.append_message(session_id, Draft("bad", "x"))
        with pytest.raises(SessionNotFoundError):
            store.delete_session("unknown")
        assert not subscription.wait(0)


def test_others_may_wake_a_follower(store, session_id):
    with store.changes.subscribe(session_id) as subscription:
        subscription.event.set()
        assert subscription.wait(0)


def test_followers_that_left_are_forgotten():
    changes = Changes()
    subscription = changes.subscribe("s")
    another = changes.subscribe("s")
    subscription.close()
    subscription.close()
    changes.announce(["s"], ["s"])
    assert (subscription.event.is_set(), another.event.is_set()) == (False, True)
    another.close()
    assert not changes._followers
