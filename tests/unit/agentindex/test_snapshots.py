from __future__ import annotations

import msgspec
import pytest

from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.snapshots import SnapshotFilter, count_hidden, list_sessions
from flue_grpc.cancel import NEVER
from flue_grpc.errors import CancelledError
from tests.unit.agentindex.test_catalog import entry

ALL = SnapshotFilter()


@pytest.fixture
def catalog():
    catalog = Catalog()
    catalog.apply([entry(name, tid=tid, ended=9 - tid) for tid, name in enumerate("abcdef")])
    return catalog


def listed(catalog, wanted=ALL, after=None):
    return list(list_sessions(catalog.view(), wanted, after, NEVER))


def ids(placed):
    return [item.item.id for item in placed]


def test_it_goes_on_behind_any_item(catalog):
    whole = listed(catalog)
    assert ids(whole) == list("abcdef")
    for number, placed in enumerate(whole):
        assert ids(listed(catalog, after=placed.cursor)) == list("abcdef")[number + 1 :]


def test_it_goes_on_behind_an_item_that_vanished(catalog):
    cursor = listed(catalog)[2].cursor
    catalog.apply([], ["/logs/c"])
    assert ids(listed(catalog, after=cursor)) == list("def")


def test_what_changed_after_the_first_response_is_left_out(catalog):
    cursor = listed(catalog)[1].cursor
    catalog.apply([entry("e", tid=4, ended=99), entry("a", tid=0, ended=1), entry("new", ended=0)])
    assert ids(listed(catalog, after=cursor)) == list("cdf")
    assert ids(listed(catalog)) == ["e", "b", "c", "d", "f", "a", "new"]


def test_sessions_without_time_are_paged_too(catalog):
    catalog.apply([entry("x"), entry("y")])
    cursor = next(item.cursor for item in listed(catalog) if item.item.id == "x")
    assert ids(listed(catalog, after=cursor)) == ["y"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (SnapshotFilter(tools=("logs",)), "abc"),
        (SnapshotFilter(tools=("acts", "unheard")), "d"),
        (SnapshotFilter(tools=("unheard",)), ""),
        (SnapshotFilter(cwd="/c"), "abcd"),
        (SnapshotFilter(cwd="/C"), ""),
        (SnapshotFilter(cwd="/"), ""),
        (SnapshotFilter(since=20), "ab"),
        (SnapshotFilter(since=21), "a"),
        (SnapshotFilter(until=10), "c"),
        (SnapshotFilter(until=11), "bc"),
        (SnapshotFilter(since=6, until=10), ""),
        (SnapshotFilter(since=20, until=31), "ab"),
    ],
)
def test_filters(wanted, expected):
    catalog = Catalog()
    catalog.apply(
        [
            span("a", 30, 40),
            span("b", 10, 20),
            span("c", 5, 5),
            entry("d", tool="acts", path="/acts/d"),
        ]
    )
    assert ids(listed(catalog, wanted)) == list(expected)


def span(name, started, ended):
    made = entry(name, ended=ended)
    summary = msgspec.structs.replace(made.record.summary, started_at=started)
    record = msgspec.structs.replace(made.record, summary=summary)
    return type(made)(made.tid, made.path, made.place, record, made.changed)


class TestSubagents:
    @pytest.fixture
    def catalog(self):
        catalog = Catalog()
        catalog.apply(
            [
                entry("p", ended=3),
                entry("s", ended=2, subagent=True, parent="p"),
                entry("t", ended=1, subagent=True, parent="p"),
                entry("empty", ended=1, subagent=True, parent="p", messages=0),
            ]
        )
        return catalog

    def test_they_are_hidden_and_counted(self, catalog):
        assert ids(listed(catalog)) == ["p"]
        assert count_hidden(catalog.view(), ALL) == 2
        assert count_hidden(catalog.view(), SnapshotFilter(since=2)) == 1
        assert count_hidden(catalog.view(), SnapshotFilter(tools=("acts",))) == 0

    def test_they_are_shown_when_asked_for(self, catalog):
        wanted = SnapshotFilter(include_subagents=True)
        assert ids(listed(catalog, wanted)) == ["p", "s", "t"]
        assert count_hidden(catalog.view(), wanted) == 0


def test_a_cancelled_call_stops(catalog):
    class Cancelled:
        def is_cancelled(self):
            return True

        def check(self):
            raise CancelledError("over")

    with pytest.raises(CancelledError):
        next(list_sessions(catalog.view(), ALL, None, Cancelled()))


def test_a_page_of_many_looks_at_no_more_than_it_gives(catalog):
    catalog.apply([entry(f"n{number:05}", tid=number + 10) for number in range(5000)])
    view = catalog.view()
    after = list(list_sessions(view, ALL, None, NEVER))[2499].cursor
    looked = []

    class Watched(tuple):
        __slots__ = ()

        def __getitem__(self, place):
            looked.append(place)
            return tuple.__getitem__(self, place)

    watched = type(view)(view.sessions, Watched(view.mains), view.subagents, view.moment)
    items = list_sessions(watched, ALL, after, NEVER)
    first, *_ = [next(items).item.id for _ in range(50)]
    assert first == "n02494"
    assert len(looked) <= 50 + 14
