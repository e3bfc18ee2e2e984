"""Usage by groups (contract "Usage")."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex import parsing, usage
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.discovery import discover
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.local_sweep import LocalSweep
from flue_grpc.agentindex.usage import UsageQuery, list_usage
from flue_grpc.agentindex.values import TokenUsage
from flue_grpc.cancel import NEVER
from flue_grpc.errors import BadTimeZoneError, CancelledError
from tests.unit.agentindex.logs import SECOND, Home, log

DAY = 86_400


class Shelf:
    """A home swept into an index file."""

    def __init__(self, base):
        self.home = Home(base)
        self.file = open_index_file(self.home.directory, str(self.home.path), ())
        self.catalog = Catalog()
        self.local = LocalSweep(self.file, self.home.adapters, self.catalog, lambda: False)

    def sweep(self):
        seen = discover(self.home.roots, self.catalog.known)
        self.local.run(seen.dirty, self.catalog.vanished(seen.paths))
        return self

    def rows(self, *group_by, after=None, **wanted):
        query = UsageQuery(group_by=group_by, **wanted)
        return list(list_usage(self.file, self.catalog, query, after, NEVER))

    def table(self, *group_by, **wanted):
        """Each row as its keys, input tokens, cost, sessions and messages."""
        return [
            (*row.keys, row.tokens.input, row.cost_usd, row.session_count, row.message_count)
            for row in (placed.item for placed in self.rows(*group_by, **wanted))
        ]

    def close(self):
        self.local.close()
        self.file.close()


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def full(shelf):
    write = shelf.home.write
    write(
        "logs/a/x.jsonl",
        log(t=1, model="m", **{"in": 1}),
        log(t=DAY, model="n", **{"in": 2}),
        log(model="n", **{"in": 4}),
        tail=log(t=2 * DAY, cost=0.5, **{"in": 8}),
    )
    write("logs/b/x~s.jsonl", log(t=2, model="m", **{"in": 16}))
    write("logs/b/x~s~t.jsonl", log(t=3, model="m", **{"in": 32}))
    write("logs/b/y.jsonl", log(t=4, cost=0.25, **{"in": 64}))
    write("old/b/y.jsonl", log(t=4, **{"in": 1000}))
    write("old/b/none.jsonl", log(t=4, **{"in": 1000}))
    write("logs/b/quiet.jsonl", log(system=True))
    return shelf.sweep()


class TestGroups:
    def test_without_any_there_is_one_total(self, full):
        assert full.table() == [(127, 0.75, 2, 7)]

    def test_an_empty_total_is_a_row_too(self, shelf):
        assert shelf.sweep().table() == [(0, None, 0, 0)]
        assert shelf.table("day") == []

    def test_by_day(self, full):
        assert full.table("day") == [
            ("", 4, None, 1, 1),
            ("1970-01-01", 113, 0.25, 2, 4),
            ("1970-01-02", 2, None, 1, 1),
            ("1970-01-03", 8, 0.5, 1, 1),
        ]

    def test_a_line_without_a_time_never_joins_the_day_of_others(self, shelf):
        shelf.home.write("logs/a/x.jsonl", log(t=1, **{"in": 1}), log(**{"in": 2}))
        assert shelf.sweep().table("day") == [("", 2, None, 1, 1), ("1970-01-01", 1, None, 1, 1)]

    def test_by_day_in_a_time_zone(self, full):
        assert full.table("day", time_zone="America/Lima") == [
            ("", 4, None, 1, 1),
            ("1969-12-31", 113, 0.25, 2, 4),
            ("1970-01-01", 2, None, 1, 1),
            ("1970-01-02", 8, 0.5, 1, 1),
        ]

    def test_by_model(self, full):
        assert full.table("model") == [
            ("", 64, 0.25, 1, 1),
            ("m", 49, None, 1, 3),
            ("n", 14, 0.5, 1, 3),
        ]

    def test_by_directory_each_transcript_has_its_own(self, full):
        assert full.table("cwd") == [("/a", 15, 0.5, 1, 4), ("/b", 112, 0.25, 2, 3)]

    def test_by_session_subagents_are_under_their_topmost_ancestor(self, full):
        assert full.table("session") == [("logs:x", 63, 0.5, 1, 6), ("logs:y", 64, 0.25, 1, 1)]
        summary = full.catalog.get(("logs", "x")).summary
        assert summary.tokens + summary.subagent_tokens == TokenUsage(63)

    def test_an_orphan_is_under_itself(self, full):
        (full.home.path / "logs/a/x.jsonl").unlink()
        full.sweep()
        assert full.table("session") == [
            ("logs:x~s", 48, None, 1, 2),
            ("logs:y", 64, 0.25, 1, 1),
        ]

    def test_by_several_in_the_order_asked_for(self, full):
        assert full.table("tool", "model", "day")[:3] == [
            ("logs", "", "1970-01-01", 64, 0.25, 1, 1),
            ("logs", "m", "1970-01-01", 49, None, 1, 3),
            ("logs", "n", "", 4, None, 1, 1),
        ]
        assert full.table("day", "tool")[0] == ("", "logs", 4, None, 1, 1)


class TestFilters:
    def test_tools(self, full):
        assert full.table(tools=("logs", "unheard")) == [(127, 0.75, 2, 7)]
        assert full.table(tools=("unheard",)) == [(0, None, 0, 0)]

    def test_directory(self, full):
        assert full.table(cwd="/a") == [(15, 0.5, 1, 4)]
        assert full.table(cwd="/") == [(0, None, 0, 0)]

    @pytest.mark.parametrize(
        ("since", "until", "tokens"),
        [
            (0, None, 123),
            (SECOND, 4 * SECOND, 49),
            (SECOND + 1, 4 * SECOND, 48),
            (SECOND, 4 * SECOND + 1, 113),
            (None, DAY * SECOND, 113),
            (None, DAY * SECOND + 1, 115),
            (2 * DAY * SECOND, None, 8),
            (2 * DAY * SECOND + 1, None, 0),
        ],
    )
    def test_time_is_half_open_to_the_microsecond(self, full, since, until, tokens):
        ((total, _, _, _),) = full.table(since=since, until=until)
        assert total == tokens

    def test_a_bad_time_zone_is_told_before_any_row(self, full):
        query = UsageQuery(time_zone="Nowhere/Land")
        with pytest.raises(BadTimeZoneError):
            list_usage(full.file, full.catalog, query, None, NEVER)


class TestPaging:
    def test_it_goes_on_behind_any_row(self, full):
        whole = full.rows("day", "model")
        assert len(whole) == 5
        for number, placed in enumerate(whole):
            assert full.rows("day", "model", after=placed.cursor) == whole[number + 1 :]

    def test_behind_the_total_there_is_nothing(self, full):
        (total,) = full.rows()
        assert full.rows(after=total.cursor) == []


class TestKeepingUp:
    def test_an_append_counts_once(self, full):
        full.home.append("logs/a/x.jsonl", b"", log(t=5, **{"in": 100}))
        assert full.sweep().table() == [(227, 0.75, 2, 8)]

    def test_a_vanished_transcript_does_not_count(self, full):
        (full.home.path / "logs/b/y.jsonl").unlink()
        assert full.sweep().table("session")[1] == ("logs:y", 1000, None, 1, 1)
        (full.home.path / "old/b/y.jsonl").unlink()
        assert [keys for keys, *_ in full.sweep().table("session")] == ["logs:x"]

    def test_blocks_split_between_groups_are_counted_by_line(self, shelf, monkeypatch):
        monkeypatch.setattr(parsing, "USAGE_BLOCK_LINES", 4)
        lines = [log(t=n * DAY // 3, model="mn"[n % 2], **{"in": n}) for n in range(30)]
        shelf.home.write("logs/a/x.jsonl", *lines)
        shelf.sweep()
        assert sum(row[1] for row in shelf.table("day")) == sum(range(30))
        assert shelf.table("model") == [
            ("m", sum(range(0, 30, 2)), None, 1, 15),
            ("n", sum(range(1, 30, 2)), None, 1, 15),
        ]


def test_rows_are_read_in_bounded_batches(full, monkeypatch):
    expected = full.table("day", "session")
    monkeypatch.setattr(usage, "READ_BATCH_ROWS", 1)
    assert full.table("day", "session") == expected


def test_a_cancelled_call_stops_at_the_next_block(full):
    class Cancelled:
        asked = 0

        def is_cancelled(self):
            return False

        def check(self):
            self.asked += 1
            if self.asked == 3:
                raise CancelledError("over")

    cancel = Cancelled()
    with pytest.raises(CancelledError):
        list(list_usage(full.file, full.catalog, UsageQuery(), None, cancel))
    assert cancel.asked == 3


LINES = st.builds(
    lambda t, model, tokens, cost, key: log(
        **({} if t is None else {"t": t}),
        **({} if cost is None else {"cost": cost}),
        **({} if key is None else {"key": key}),
        model=model,
        **{"in": tokens},
    ),
    st.none() | st.integers(0, 4 * DAY),
    st.sampled_from("mn"),
    st.integers(0, 9),
    st.none() | st.floats(0, 9),
    st.none() | st.sampled_from("kl"),
)
FILES = st.dictionaries(
    st.sampled_from(["a/x", "a/y", "b/x~s", "b/x~s~t", "b/y~u"]),
    st.lists(LINES, max_size=8),
    max_size=5,
)
GROUPS = st.permutations(["day", "model", "tool", "cwd", "session"]).flatmap(
    lambda groups: st.integers(0, 5).map(lambda count: tuple(groups[:count]))
)


@given(files=FILES, group_by=GROUPS, block=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_any_grouping_sums_up_to_the_summaries(tmp_path_factory, files, group_by, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "USAGE_BLOCK_LINES", block)
        shelf = Shelf(tmp_path_factory.mktemp("sums"))
        for name, lines in files.items():
            shelf.home.write(f"logs/{name}.jsonl", *lines)
        shelf.sweep()
        rows = [placed.item for placed in shelf.rows(*group_by)]
        summaries = [session.summary for session, _ in shelf.catalog.indexed().values()]
        shelf.close()
    assert [row.keys for row in rows] == sorted({row.keys for row in rows})
    assert sum(row.tokens.input for row in rows) == sum(one.tokens.input for one in summaries)
    assert sum(row.message_count for row in rows) == sum(one.message_count for one in summaries)
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    recorded = [one.cost_usd for one in summaries if one.cost_usd is not None]
    assert bool(costs) == bool(recorded)
    assert math.isclose(math.fsum(costs), math.fsum(recorded), abs_tol=1e-9)
