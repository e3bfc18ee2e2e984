"""Watching the list of sessions change (contract "Watch", rule 9)."""

from __future__ import annotations

import random
import threading
import time

import pytest

from flue_grpc import limits
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.snapshots import SnapshotFilter
from flue_grpc.agentindex.watching import Added, Removed, Updated, Watch
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError
from tests.unit.agentindex.test_catalog import entry


@pytest.fixture
def catalog():
    catalog = Catalog()
    catalog.apply([entry("a", ended=1), entry("b", ended=2)])
    return catalog


@pytest.fixture
def watch(catalog):
    watches = []

    def watch(**wanted):
        watches.append(Watch(catalog, SnapshotFilter(**wanted)))
        return watches[-1]

    yield watch
    for each in watches:
        each.close()
        each.close()


def short(events):
    """Name events in a word."""
    return [
        f"-{event.id}" if isinstance(event, Removed)
        else ("+" if isinstance(event, Added) else "~") + event.summary.id
        for event in events
    ]  # fmt: skip


def news(watch):
    return short(watch.changes(NEVER))


def test_the_present_comes_newest_first_then_each_change(catalog, watch):
    seen = watch()
    assert short(seen.backlog(NEVER)) == ["+b", "+a"]
    assert news(seen) == []
    catalog.apply([entry("c", ended=3), entry("a", ended=4)])
    assert news(seen) == ["+c", "~a"]
    catalog.apply([], ["/logs/b"])
    assert list(seen.changes(NEVER)) == [Removed("logs", "b")]


def test_what_changes_during_the_backlog_is_told_after_it(catalog, watch):
    seen = watch()
    catalog.apply([entry("c", ended=3)], ["/logs/a"])
    assert short(seen.backlog(NEVER)) == ["+c", "+b"]
    catalog.apply([entry("a", ended=1)], ["/logs/c"])
    # Both changed before the backlog already; a was never shown.
    assert sorted(news(seen)) == ["+a", "-c"]


def test_a_session_that_came_and_went_meanwhile_is_no_event(catalog, watch):
    seen = watch()
    list(seen.backlog(NEVER))
    catalog.apply([entry("c", ended=3)])
    catalog.apply([], ["/logs/c"])
    assert news(seen) == []


def test_a_removed_session_may_come_again(catalog, watch):
    seen = watch()
    list(seen.backlog(NEVER))
    catalog.apply([], ["/logs/a"])
    assert news(seen) == ["-a"]
    catalog.apply([entry("a", ended=9)])
    assert news(seen) == ["+a"]


def test_a_session_that_is_listed_no_more_is_removed(catalog, watch):
    seen = watch()
    list(seen.backlog(NEVER))
    catalog.apply([entry("a", ended=1, messages=0)])
    assert news(seen) == ["-a"]
    catalog.apply([entry("a", ended=1)])
    assert news(seen) == ["+a"]


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ({}, ["+b", "+a"]),
        ({"tools": ("logs",)}, ["+b", "+a"]),
        ({"tools": ("acts",)}, []),
        ({"cwd": "/c"}, ["+b", "+a"]),
        ({"cwd": "/C"}, []),
        ({"include_subagents": True}, ["+s", "+b", "+a"]),
    ],
)
def test_filters_hold_for_the_present_and_for_changes(catalog, watch, wanted, shown):
    early = watch(**wanted)
    catalog.apply([], ["/logs/a", "/logs/b"])
    assert short(early.backlog(NEVER)) == []
    news(early)
    sessions = [entry("s", ended=9, subagent=True, parent="a"), entry("b", ended=2)]
    catalog.apply([*sessions, entry("a", ended=1)])
    assert sorted(news(early)) == sorted(shown)
    assert short(watch(**wanted).backlog(NEVER)) == shown


def test_what_a_subagent_used_changes_its_session(catalog, watch):
    seen = watch()
    list(seen.backlog(NEVER))
    catalog.apply([entry("s", ended=9, subagent=True, parent="a", tokens=5)])
    (event,) = seen.changes(NEVER)
    assert isinstance(event, Updated)
    assert (event.summary.id, event.summary.subagent_tokens.input) == ("a", 5)


def test_changes_that_nobody_takes_are_one_per_session(catalog, watch):
    seen = watch()
    list(seen.backlog(NEVER))
    for ended in range(3, 1000):
        catalog.apply([entry("a", ended=ended)])
    assert len(seen._subscription._pending) == 1
    (event,) = seen.changes(NEVER)
    assert event.summary.ended_at == 999


def test_a_closed_watch_hears_nothing_more(catalog, watch):
    seen = watch()
    seen.close()
    catalog.apply([entry("c", ended=3)])
    assert not seen.event.is_set()
    assert not catalog.changes._subscriptions


class TestWaiting:
    def test_a_change_before_the_waiting_is_not_lost(self, catalog, watch):
        seen = watch()
        list(seen.backlog(NEVER))
        catalog.apply([entry("c", ended=3)])
        assert seen.wait(NEVER)
        assert news(seen) == ["+c"]

    def test_a_heartbeat_is_due_though_it_wakes_for_nothing(self, catalog, watch, monkeypatch):
        monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.02)
        seen = watch(cwd="/elsewhere")
        list(seen.backlog(NEVER))
        until = time.monotonic() + 20
        ended = 10
        while seen.wait(NEVER):
            assert time.monotonic() < until, "no heartbeat came"
            ended += 1
            catalog.apply([entry("a", ended=ended)])
            assert news(seen) == []

    def test_a_cancelled_call_ends_it(self, watch):
        class Call:
            def check(self):
                raise CancelledError("the call was cancelled")

        seen = watch()
        seen.event.set()
        with pytest.raises(CancelledError):
            seen.wait(Call())
        with pytest.raises(CancelledError):
            list(seen.backlog(Call()))
        with pytest.raises(CancelledError):
            list(seen.changes(Call()))


class Screen:
    """What a client shows of the events of one watch, taken on a thread of its own."""

    def __init__(self, seen, is_over):
        self.shown = {}
        self._seen = seen
        self._is_over = is_over
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        self._show(self._seen.backlog(NEVER))
        while not self._is_over.is_set():
            self._seen.event.wait(20)
            self._show(self._seen.changes(NEVER))
        self._show(self._seen.changes(NEVER))

    def _show(self, events):
        for event in events:
            if isinstance(event, Removed):
                del self.shown[event.id]
            else:
                assert (event.summary.id in self.shown) == isinstance(event, Updated)
                self.shown[event.summary.id] = event.summary


def test_after_a_storm_every_watch_shows_what_is_there(catalog, watch):
    dice = random.Random(11)
    is_over = threading.Event()
    screens = [Screen(watch(), is_over) for _ in range(4)]
    for screen in screens:
        screen.thread.start()
    for ended in range(10, 600):
        name = dice.choice("abcdefgh")
        if dice.random() < 0.3:
            catalog.apply([], [f"/logs/{name}"])
        else:
            catalog.apply([entry(name, ended=ended)])
    is_over.set()
    catalog.apply([entry("last", ended=1000)])
    for screen in screens:
        screen.thread.join()
    there = {session.summary.id: session.summary for session in catalog.view().sessions}
    assert [screen.shown for screen in screens] == [there] * 4
