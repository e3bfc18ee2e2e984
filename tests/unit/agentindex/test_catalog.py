"""What is listed, in which order, and with what its subagents used (behaviour B2, B5)."""

from __future__ import annotations

from threading import Event

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.adapters.base import Source
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.parsing import Trail
from flue_grpc.agentindex.records import Entry, FileKey, Place, Record, Standing
from flue_grpc.agentindex.values import Summary, TokenUsage

PLACE = Place("logs", "logs", "/logs")
STANDING = Standing(0, b"", False, Trail(), 0)


def entry(
    name,
    *,
    tid=1,
    ended=None,
    parent="",
    subagent=False,
    tokens=1,
    rank=0,
    mtime=0,
    size=0,
    path=None,
    messages=1,
    changed=1,
    tool="logs",
    place=PLACE,
):
    summary = Summary(
        id=name,
        tool=tool,
        cwd="/c",
        title="",
        first_prompt="",
        started_at=ended,
        ended_at=ended,
        message_count=messages,
        tool_call_count=0,
        models=(),
        tokens=TokenUsage(tokens),
        cost_usd=None,
        file_size=size,
        resume=None,
        prompt_count=0,
        parent_id=parent,
        git_branch="",
        tool_version="",
        subagent_tokens=TokenUsage(),
        updated_at=mtime,
        revision="",
        is_subagent=subagent,
    )
    record = Record(Source(tool, name, rank=rank), FileKey(size, mtime, tid, 0), STANDING, summary)
    return Entry(tid, path or f"/logs/{name}", place, record, changed)


@pytest.fixture
def catalog():
    return Catalog()


def ids(sessions):
    return [session.summary.id for session in sessions]


def below(catalog, name):
    return catalog.get(("logs", name)).summary.subagent_tokens.input


def test_newest_first_then_by_id_and_no_time_last(catalog):
    catalog.apply(
        [
            entry("b", ended=5),
            entry("late", ended=9),
            entry("a", ended=5),
            entry("z", path="/1"),
            entry("y", path="/2"),
            entry("epoch", ended=0),
        ]
    )
    assert ids(catalog.view().sessions) == ["late", "a", "b", "epoch", "y", "z"]


def test_one_id_of_two_tools_is_two_sessions(catalog):
    catalog.apply([entry("x", ended=5), entry("x", ended=5, tool="acts", path="/acts/x")])
    assert [s.summary.tool for s in catalog.view().sessions] == ["acts", "logs"]


def test_sessions_without_messages_are_found_but_not_listed(catalog):
    catalog.apply([entry("x", messages=0)])
    assert catalog.view().sessions == ()
    assert catalog.get(("logs", "x")).summary.id == "x"


def test_what_is_no_transcript_is_known_but_no_session(catalog):
    known = entry("x")
    known = msgspec.structs.replace(known.record, summary=None)
    catalog.apply([Entry(1, "/logs/x", PLACE, known, 1)])
    assert (catalog.view().sessions, catalog.get(("logs", "x"))) == ((), None)
    assert catalog.known == {PLACE: {"/logs/x": known}}


def test_the_files_below_a_directory(catalog):
    paths = ["/logs/a/1", "/logs/a/b/2", "/logs/ab/3", "/logs/a.4", "/logs/a0"]
    catalog.apply([entry(f"s{n}", path=path) for n, path in enumerate(paths)])
    assert catalog.below(["/logs/a"]) == ("/logs/a/1", "/logs/a/b/2")
    assert catalog.below(["/logs/a/b", "/never", "/logs/a0"]) == ("/logs/a/b/2",)
    assert set(catalog.below(["/logs"])) == set(paths)
    assert catalog.below([]) == catalog.below(["/logs/a.4"]) == ()


def test_a_vanished_file_is_gone(catalog):
    catalog.apply([entry("x"), entry("y")])
    catalog.apply([], ["/logs/x", "/never"])
    assert ids(catalog.view().sessions) == ["y"]
    assert catalog.get(("logs", "x")) is None
    assert list(catalog.known[PLACE]) == ["/logs/y"]
    assert [gone.path for gone in catalog.vanished({"/logs/z"})] == ["/logs/y"]


def test_a_file_whose_id_changed_is_another_session(catalog):
    catalog.apply([entry("x", path="/p")])
    catalog.apply([entry("y", path="/p")])
    assert ids(catalog.view().sessions) == ["y"]
    assert catalog.get(("logs", "x")) is None


def test_a_view_never_changes(catalog):
    catalog.apply([entry("x", ended=1)])
    before = catalog.view()
    assert catalog.view() is before
    catalog.apply([entry("y", ended=2)])
    assert ids(before.sessions) == ["x"]
    assert ids(catalog.view().sessions) == ["y", "x"]


class TestDuplicates:
    """Rank, then the newest, then the larger, then path order (behaviour B2)."""

    @pytest.mark.parametrize(
        ("winner", "loser"),
        [
            ({"rank": 0, "mtime": 1}, {"rank": 1, "mtime": 9, "size": 9}),
            ({"mtime": 2, "size": 1}, {"mtime": 1, "size": 9}),
            ({"mtime": 1, "size": 2}, {"mtime": 1, "size": 1}),
            ({"path": "/a/x"}, {"path": "/b/x"}),
        ],
    )
    @pytest.mark.parametrize("first", ["winner", "loser"])
    def test_the_winner_is_the_same_in_any_order(self, catalog, winner, loser, first):
        winner = entry("x", **{"path": "/2", **winner}, tid=1)
        loser = entry("x", **{"path": "/1", **loser}, tid=2)
        for found in (winner, loser) if first == "winner" else (loser, winner):
            catalog.apply([found])
        assert catalog.get(("logs", "x")).entry is winner
        assert len(catalog.view().sessions) == 1
        catalog.apply([], [winner.path])
        assert catalog.get(("logs", "x")).entry is loser

    def test_who_follows_the_one_learns_of_the_other(self, catalog):
        old, new = (
            entry("a", path="/logs/old", mtime=1),
            entry("a", tid=2, path="/logs/new", mtime=2),
        )
        catalog.apply([old, entry("b", tid=3, path="/logs/b")])
        woken, other = Event(), Event()
        with (
            catalog.followed.following("/logs/old", woken),
            catalog.followed.following("/logs/b", other),
        ):
            catalog.apply([new])
            assert woken.is_set()
            assert catalog.get(("logs", "a")).entry is new
            woken.clear()
            catalog.apply([], ["/logs/old"])
            assert woken.is_set()
            assert not other.is_set()


class TestSubagents:
    def test_tokens_go_to_the_parent_whatever_comes_first(self, catalog):
        catalog.apply([entry("s", subagent=True, parent="p", tokens=7)])
        catalog.apply([entry("p")])
        catalog.apply([entry("t", subagent=True, parent="p", tokens=5)])
        assert below(catalog, "p") == 12
        assert catalog.get(("logs", "p")).summary.tokens.input == 1

    def test_and_to_all_ancestors(self, catalog):
        catalog.apply(
            [
                entry("deep", subagent=True, parent="s", tokens=7),
                entry("s", subagent=True, parent="p", tokens=5),
                entry("p"),
            ]
        )
        assert [below(catalog, name) for name in ("deep", "s", "p")] == [0, 7, 12]
        catalog.apply([entry("deep", subagent=True, parent="s", tokens=8)])
        assert [below(catalog, name) for name in ("deep", "s", "p")] == [0, 8, 13]

    def test_they_leave_with_the_subagent(self, catalog):
        catalog.apply([entry("p"), entry("s", subagent=True, parent="p", tokens=7)])
        catalog.apply([], ["/logs/s"])
        assert below(catalog, "p") == 0

    def test_they_move_with_a_new_claim(self, catalog):
        catalog.apply([entry("p"), entry("q"), entry("s", subagent=True, parent="p", tokens=7)])
        catalog.apply([entry("s", subagent=True, parent="q", tokens=7)])
        assert (below(catalog, "p"), below(catalog, "q")) == (0, 7)

    def test_ordinary_sessions_with_a_parent_are_nobodys_subagents(self, catalog):
        catalog.apply([entry("p"), entry("fork", parent="p", tokens=7)])
        assert below(catalog, "p") == 0

    def test_parents_are_of_the_same_tool(self, catalog):
        catalog.apply([entry("p", tool="acts", path="/1"), entry("s", subagent=True, parent="p")])
        assert catalog.get(("acts", "p")).summary.subagent_tokens.input == 0

    def test_the_topmost_ancestor_is_told(self, catalog):
        catalog.apply(
            [
                entry("deep", tid=1, subagent=True, parent="s"),
                entry("s", tid=2, subagent=True, parent="p"),
                entry("p", tid=3),
                entry("orphan", tid=4, subagent=True, parent="gone"),
            ]
        )
        tops = {session.summary.id: top.summary.id for session, top in catalog.indexed().values()}
        assert tops == {"deep": "p", "s": "p", "p": "p", "orphan": "orphan"}

    def test_a_circle_of_claims_counts_for_nobody(self, catalog):
        catalog.apply(
            [
                entry("a", tid=1, subagent=True, parent="b", tokens=2),
                entry("b", tid=2, subagent=True, parent="a", tokens=3),
                entry("self", tid=3, subagent=True, parent="self", tokens=4),
                entry("below", tid=4, subagent=True, parent="a", tokens=5),
            ]
        )
        assert [below(catalog, name) for name in ("a", "b", "self", "below")] == [5, 0, 0, 0]
        tops = {session.summary.id: top.summary.id for session, top in catalog.indexed().values()}
        assert tops == {"a": "a", "b": "b", "self": "self", "below": "a"}
        catalog.apply([entry("b", tid=2, tokens=3)])
        assert [below(catalog, name) for name in ("a", "b")] == [5, 7]

    def test_the_list_tells_them_apart(self, catalog):
        catalog.apply([entry("p", ended=2), entry("s", subagent=True, ended=1)])
        view = catalog.view()
        assert (ids(view.sessions), ids(view.mains), ids(view.subagents)) == (
            ["p", "s"],
            ["p"],
            ["s"],
        )


NAMES = st.sampled_from("abcdef")


@given(
    steps=st.lists(
        st.tuples(NAMES, NAMES | st.none(), st.integers(0, 9), st.booleans()), max_size=25
    ),
    others=st.sampled_from([0, 60]),
)
@settings(max_examples=100, deadline=None)
def test_any_history_ends_as_if_all_had_come_at_once(steps, others):
    grown = Catalog()
    latest = {f"/{n}": entry(f"{n:02}", path=f"/{n}", tid=99, ended=n % 7) for n in range(others)}
    grown.apply(latest.values())
    for tid, (name, parent, tokens, is_gone) in enumerate(steps):
        found = entry(
            name,
            tid=tid,
            ended=tokens,
            subagent=parent is not None,
            parent=parent or "",
            tokens=tokens,
        )
        if is_gone:
            grown.apply([], [found.path])
            latest.pop(found.path, None)
        else:
            grown.apply([found])
            latest[found.path] = found
    fresh = Catalog()
    fresh.apply(latest.values())
    assert [s.summary for s in grown.view().sessions] == [s.summary for s in fresh.view().sessions]
    assert list(grown.view().sessions) == sorted(grown.view().sessions, key=lambda s: s.sort_key)
    indexed = grown.indexed().values()
    totals = {top.key: 0 for _, top in indexed}
    for session, top in indexed:
        totals[top.key] += session.summary.tokens.input
    for key, total in totals.items():
        summary = grown.get(key).summary
        assert total == summary.tokens.input + summary.subagent_tokens.input


class TestChanges:
    def test_each_changed_session_is_told_once(self, catalog):
        with catalog.changes.subscribe() as subscription:
            catalog.apply([entry("x"), entry("y")])
            catalog.apply([entry("x", tokens=2)])
            assert subscription.event.is_set()
            assert subscription.take() == (("logs", "x"), ("logs", "y"))
            assert not subscription.event.is_set()
            assert subscription.take() == ()

    def test_parents_change_with_their_subagents(self, catalog):
        catalog.apply([entry("p")])
        with catalog.changes.subscribe() as subscription:
            catalog.apply([entry("s", subagent=True, parent="p")])
            assert set(subscription.take()) == {("logs", "p"), ("logs", "s")}

    def test_what_looks_the_same_is_no_news(self, catalog):
        catalog.apply([entry("x", changed=1)])
        with catalog.changes.subscribe() as subscription:
            catalog.apply([entry("x", changed=2)])
            assert not subscription.event.is_set()
        assert catalog.get(("logs", "x")).entry.changed == 2

    def test_vanished_and_unlisted_ones_are_told(self, catalog):
        catalog.apply([entry("x"), entry("y", messages=0)])
        with catalog.changes.subscribe() as subscription:
            catalog.apply([entry("y", messages=0, tokens=3)], ["/logs/x"])
            assert set(subscription.take()) == {("logs", "x"), ("logs", "y")}

    def test_a_closed_subscription_hears_nothing(self, catalog):
        subscription = catalog.changes.subscribe()
        subscription.close()
        subscription.close()
        catalog.apply([entry("x")])
        assert subscription.take() == ()

    def test_stamps_rise_with_every_change_and_go_on_after_a_restart(self, catalog):
        far = 2**60
        catalog.restore([entry("x", changed=far), entry("y", tid=2, changed=5)])
        assert catalog.view().moment == far
        catalog.apply([entry("y", tid=2, tokens=2)])
        stamps = [catalog.get(("logs", name)).changed for name in "xy"]
        assert stamps == [far, far + 1]
        assert catalog.view().moment == far + 1


class TestDistrust:
    def test_files_become_unknown_but_stay_listed(self, catalog):
        catalog.apply([entry("x", ended=2), entry("y", ended=1)])
        catalog.distrust(["/logs/x", "/never"])
        assert list(catalog.known[PLACE]) == ["/logs/y"]
        catalog.distrust()
        assert catalog.known == {}
        assert ids(catalog.view().sessions) == ["x", "y"]
        catalog.apply([entry("x", ended=2)], ["/logs/y"])
        assert list(catalog.known[PLACE]) == ["/logs/x"]
