"""Responses of a followed list: backlog, mark, news and heartbeats (contract rules 1, 2 and 9)."""

from __future__ import annotations

from itertools import islice

import pytest

from flue.store.v1 import store_pb2
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed
from flue_grpc.rpc.batching import batches
from flue_grpc.rpc.live import grouped, live_pages
from flue_grpc.rpc.page_token import PageTokens
from tests.rpc.test_batching import SHAPE, At, Item

REQUEST = store_pb2.ListMessagesRequest(session_id="s", follow=True)
HEARTBEAT = None


class Script:
    """A list that goes on as a test says: counts of new items, or a heartbeat."""

    def __init__(self, *acts):
        self.place = At(0)
        self._acts = list(acts)
        self._news = 0

    def news(self, cancel):
        count, self._news = self._news, 0
        for _ in range(count):
            self.place = At(self.place.n + 1)
            yield Placed(Item(self.place.n, 100), self.place)

    def wait(self, cancel):
        act = self._acts.pop(0)
        self._news = act or 0
        return act is not HEARTBEAT

    def begin(self, count):
        self._news = count
        return self


def answers(script, count, limit=0):
    tokens = PageTokens(REQUEST)
    found = islice(live_pages(script, SHAPE, limit, tokens, NEVER), count)
    return [(len(r.messages), r.caught_up, tokens.decode(r.next_page_token, At).n) for r in found]


def test_backlog_mark_news_and_heartbeats():
    script = Script(2, HEARTBEAT, 0, 1).begin(15)
    assert answers(script, 6) == [
        (10, False, 10),
        (5, False, 15),
        (0, True, 15),
        (2, True, 17),
        (0, True, 17),
        (1, True, 18),
    ]


def test_an_empty_list_begins_with_the_mark():
    assert answers(Script(3), 2) == [(0, True, 0), (3, True, 3)]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (3, [(3, False, 3)]),
        (4, [(4, False, 4)]),
        (6, [(4, False, 4), (0, True, 4), (2, True, 6)]),
        (7, [(4, False, 4), (0, True, 4), (3, True, 7)]),
    ],
)
def test_the_limit_ends_it(limit, expected):
    assert answers(Script(3, 3).begin(4), 10, limit) == expected


def test_news_come_in_responses_as_small_as_those_of_any_list():
    count = 500
    listing = (Placed(Item(n, 100), At(n)) for n in range(count))
    as_listed = [len(batch.response.messages) for batch in batches(listing, SHAPE)]
    assert len(as_listed) > 3
    backlog_then_news = answers(Script(count).begin(count), 2 * len(as_listed) + 1)
    sizes = [size for size, _, _ in backlog_then_news]
    assert sizes == [*as_listed, 0, *as_listed]


def test_items_without_a_place_are_grouped_and_no_response_is_empty():
    groups = list(grouped((Item(n, 100) for n in range(25)), SHAPE))
    assert [len(group.messages) for group in groups] == [10, 15]
    assert not any(group.next_page_token for group in groups)
    assert list(grouped((), SHAPE)) == []
