from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue.store.v1 import store_pb2
from flue_grpc import limits
from flue_grpc.listing import Cursor, Pause, Placed, Stop
from flue_grpc.rpc.batching import Shape, batches

if TYPE_CHECKING:
    from collections.abc import Generator


class At(Cursor, frozen=True):
    n: int


class Item:
    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size


def add(items, item: Item) -> int:
    items.add(id=item.number, content="x" * (item.size - 20))
    return item.size


SHAPE = Shape(store_pb2.ListMessagesResponse, lambda response: response.messages, add)
PROGRESS = Shape(
    store_pb2.ListMessagesResponse, lambda response: response.messages, add, reports_progress=True
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def listing(*steps) -> Generator:
    yield from steps


def placed(count: int, size: int = 100, start: int = 1) -> list[Placed[Item]]:
    return [Placed(Item(n, size), At(n)) for n in range(start, start + count)]


def run(steps, limit=0, shape=SHAPE, clock=None):
    return list(batches(listing(*steps), shape, limit, clock or Clock()))


def ids(batch) -> list[int]:
    return [message.id for message in batch.response.messages]


def sizes(found) -> list[int]:
    return [len(batch.response.messages) for batch in found]


def test_an_empty_list_is_one_empty_response_without_a_cursor():
    [only] = run([])
    assert ids(only) == []
    assert only.cursor is None
    assert only.is_last


def test_responses_double_while_they_are_small_and_quick():
    assert sizes(run(placed(400))) == [10, 20, 40, 80, 160, 90]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(15, [15]), (64, [64]), (65, [10, 20, 35]), (71, [10, 20, 41])],
)
def test_a_small_rest_needs_no_response_of_its_own(limit, expected):
    assert sizes(run(placed(400), limit)) == expected


def test_a_short_list_that_comes_slowly_leaves_in_parts():
    clock = Clock()

    def slow():
        for number, item in enumerate(placed(60)):
            clock.now += 0.00005 if number < 15 else 0.02
            yield item

    found = list(batches(slow(), SHAPE, 50, clock))
    assert sizes(found) == [20, 10, 10, 10]


def test_responses_grow_to_what_fits_the_target():
    found = run(placed(400, size=2000))
    assert sizes(found)[:4] == [10, 20, 32, 32]


def test_slow_responses_do_not_grow():
    clock = Clock()

    def slow():
        for item in placed(35):
            clock.now += 0.01
            yield item

    found = list(batches(slow(), SHAPE, 0, clock))
    assert sizes(found) == [10, 10, 10, 5]


def test_a_slow_reader_does_not_count_as_a_slow_list():
    clock = Clock()
    counts = []
    for batch in batches(listing(*placed(70)), SHAPE, 0, clock):
        counts.append(len(batch.response.messages))
        clock.now += 30
    assert counts == [10, 20, 40]


def test_responses_halve_when_they_come_out_large():
    items = placed(10) + placed(200, size=40_000, start=11)
    found = run(items)
    assert sizes(found)[:3] == [10, 2, 2]
    huge = placed(10) + placed(10, size=200_000, start=11)
    assert sizes(run(huge))[:3] == [10, 1, 1]


def test_no_response_passes_one_mebibyte_unless_one_item_does():
    third = limits.BATCH_MAX_BYTES // 3
    big = limits.BATCH_MAX_BYTES + 5
    small = placed(9, size=6000)
    items = [*small, Placed(Item(10, 3 * third), At(10)), Placed(Item(11, big), At(11))]
    found = run(items)
    assert [ids(batch) for batch in found] == [list(range(1, 10)), [10], [11]]
    assert found[0].cursor == At(9)


def test_the_cursor_is_empty_exactly_when_nothing_is_left():
    found = run(placed(10))
    assert sizes(found) == [10]
    assert found[0].cursor is None
    found = run(placed(11))
    assert [batch.cursor for batch in found] == [At(10), None]
    assert [batch.is_last for batch in found] == [False, True]


@pytest.mark.parametrize(("count", "cursor"), [(7, None), (8, At(7))])
def test_a_limit_ends_the_list_with_a_cursor_only_when_more_is_there(count, cursor):
    [only] = run(placed(count), limit=7)
    assert ids(only) == list(range(1, 8))
    assert only.cursor == cursor
    assert only.is_last


def test_a_pause_lets_what_is_held_leave():
    found = run([*placed(3), Pause(), *placed(2, start=4)])
    assert [ids(batch) for batch in found] == [[1, 2, 3], [4, 5]]
    assert [batch.cursor for batch in found] == [At(3), None]


def test_a_pause_that_turns_out_to_be_the_end_is_followed_by_an_empty_response():
    found = run([*placed(3), Pause()])
    assert [ids(batch) for batch in found] == [[1, 2, 3], []]
    assert [batch.cursor for batch in found] == [At(3), None]


def test_a_pause_after_the_limit_still_finds_out_whether_more_is_there():
    found = run([*placed(2), Pause(50, At(2)), *placed(1, start=3)], limit=2)
    assert [ids(batch) for batch in found] == [[1, 2], []]
    assert [batch.cursor for batch in found] == [At(2), At(2)]
    assert [batch.is_last for batch in found] == [False, True]
    found = run([*placed(2), Pause(50, At(2))], limit=2)
    assert [batch.cursor for batch in found] == [At(2), None]


def test_progress_is_reported_only_when_asked_for_and_due():
    clock = Clock()

    def scan():
        for place in range(1, 7):
            clock.now += limits.PROGRESS_SECONDS / 2
            yield Pause(place * 10, At(place))

    found = list(batches(scan(), PROGRESS, 0, clock))
    assert [batch.bytes_scanned for batch in found] == [20, 40, 60, 60]
    assert [batch.cursor for batch in found] == [At(2), At(4), At(6), None]
    clock.now = 0
    assert len(list(batches(scan(), SHAPE, 0, clock))) == 1


def test_progress_without_a_place_to_go_on_from_is_not_reported():
    clock = Clock()

    def scan():
        clock.now += 10
        yield Pause(10)

    assert [batch.cursor for batch in batches(scan(), PROGRESS, 0, clock)] == [None]


def test_a_stop_ends_the_list_where_it_goes_on():
    found = run([*placed(2), Stop(At(77), 640)])
    assert [ids(batch) for batch in found] == [[1, 2]]
    assert found[0].cursor == At(77)
    assert found[0].bytes_scanned == 640
    assert found[0].is_last


def test_closing_the_responses_closes_the_list():
    closed = []

    def watched():
        try:
            yield from placed(100)
        finally:
            closed.append(True)

    responses = batches(watched(), SHAPE)
    next(responses)
    responses.close()
    assert closed == [True]


def test_reaching_the_limit_closes_the_list():
    closed = []

    def watched():
        try:
            yield from placed(100)
        finally:
            closed.append(True)

    list(batches(watched(), SHAPE, 5))
    assert closed == [True]


STEPS = st.lists(
    st.one_of(
        st.integers(20, 3 * limits.BATCH_TARGET_BYTES), st.just("pause"), st.integers(20, 200)
    ),
    max_size=60,
)


@settings(max_examples=100)
@given(STEPS, st.integers(0, 70))
def test_responses_concatenated_are_the_list_up_to_its_limit(plan, limit):
    steps = []
    for number, step in enumerate(plan, 1):
        steps.append(Pause(number) if step == "pause" else Placed(Item(number, step), At(number)))
    numbers = [step.item.number for step in steps if isinstance(step, Placed)]
    found = run(steps, limit)
    sent = [number for batch in found for number in ids(batch)]
    expected = numbers[:limit] if limit else numbers
    assert sent == expected
    assert [batch.is_last for batch in found] == [False] * (len(found) - 1) + [True]
    is_more = len(expected) < len(numbers)
    assert (found[-1].cursor is not None) == is_more
    assert all(batch.cursor is not None for batch in found[:-1])
    assert all(
        batch.response.ByteSize() <= limits.BATCH_MAX_BYTES or len(ids(batch)) == 1
        for batch in found
    )
