"""Many threads on one Store: every answer fits one order of the writes (behaviour A1).

Writers note when a call began and ended; readers note what they saw between. A later
look never shows less, what was answered before a look began is in it, what had not
begun when it ended is not, and all looks agree on one order.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

import pytest

from flue_grpc.errors import RequestIdReusedError, SessionNotFoundError
from flue_grpc.store.values import Draft, EntryDraft, MessageQuery
from tests.waiting import wait_until

WRITERS, READERS, APPENDS, LOOKS = 6, 4, 40, 30
SESSIONS = ("s0", "s1", "s2")


@dataclass(frozen=True)
class Write:
    texts: tuple[str, ...]
    session: str
    begun: float
    ended: float
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Look:
    session: str
    begun: float
    ended: float
    seen: tuple[tuple[int, str], ...]


class Threads:
    """Runs functions at once, and raises what one of them raised."""

    def __init__(self):
        self._threads = []
        self._errors = []

    def start(self, function, *arguments):
        thread = threading.Thread(target=self._run, args=(function, arguments))
        thread.start()
        self._threads.append(thread)

    def _run(self, function, arguments):
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised by join
            self._errors.append(error)

    def join(self):
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]


def _write(store, number, writes):
    dice = random.Random(number)
    for count in range(APPENDS):
        session, begun = dice.choice(SESSIONS), time.monotonic()
        texts = tuple(f"w{number}x{count}x{n}" for n in range(dice.choice((1, 1, 3))))
        drafts = [Draft("user", text) for text in texts]
        if len(drafts) == 1:
            made = (store.append_message(session, drafts[0], f"r{number}-{count}"),)
        else:
            made = store.append_messages(session, drafts)
        ids = tuple(message.id for message in made)
        writes.append(Write(texts, session, begun, time.monotonic(), ids))


def _look(store, number, looks):
    dice = random.Random(number)
    for _ in range(LOOKS):
        session, begun = dice.choice(SESSIONS), time.monotonic()
        listed = store.list_messages(session)
        seen = tuple((placed.item.id, placed.item.content) for placed in listed)
        looks.append(Look(session, begun, time.monotonic(), seen))


def _search(store, writes, finds):
    """What was answered is found at once."""
    wait_until(lambda: writes)
    for _ in range(LOOKS):
        write = writes[-1]
        query = MessageQuery(write.texts[0], scope="all")
        (found,) = [placed.item.message for placed in store.search_messages(query)]
        assert (found.id, found.content) == (write.ids[0], write.texts[0])
        finds.append(found)


def test_every_look_fits_one_order_of_all_writes(store):
    for session in SESSIONS:
        store.create_session(session, session)
    threads, writes, looks, finds = Threads(), [], [], []
    for number in range(WRITERS):
        threads.start(_write, store, number, writes)
    for number in range(READERS):
        threads.start(_look, store, number, looks)
    threads.start(_search, store, writes, finds)
    threads.join()
    counts = (len(writes), len(looks), len(finds))
    assert counts == (WRITERS * APPENDS, READERS * LOOKS, LOOKS)
    order = {
        s: tuple((p.item.id, p.item.content) for p in store.list_messages(s)) for s in SESSIONS
    }
    assert sum(map(len, order.values())) == sum(len(write.texts) for write in writes)
    _check_writes(writes, order)
    for look in looks:
        _check_look(look, order[look.session], [w for w in writes if w.session == look.session])
    for reader in SESSIONS:
        _check_growth([look for look in looks if look.session == reader])


def _check_writes(writes, order):
    """Batches stand together; a write that began after another ended comes after it."""
    for write in writes:
        at = order[write.session].index((write.ids[0], write.texts[0]))
        batch = order[write.session][at : at + len(write.texts)]
        assert batch == tuple(zip(write.ids, write.texts, strict=True))
    for earlier in writes:
        assert all(
            later.ids[0] > earlier.ids[-1] for later in writes if later.begun > earlier.ended
        )


def _check_look(look, order, writes):
    assert look.seen == order[: len(look.seen)]
    ids = {number for number, _ in look.seen}
    for write in writes:
        if write.ended < look.begun:
            assert ids.issuperset(write.ids)
        if write.begun > look.ended:
            assert ids.isdisjoint(write.ids)


def _check_growth(looks):
    for earlier in looks:
        for later in looks:
            if later.begun > earlier.ended:
                assert len(later.seen) >= len(earlier.seen)


def test_of_many_equal_requests_one_writes_and_all_get_its_answer(store):
    store.create_session("s", "t")
    threads, made, barrier = Threads(), [], threading.Barrier(16)

    def append():
        barrier.wait()
        made.append(store.append_message("s", Draft("user", "once"), "same"))

    for _ in range(16):
        threads.start(append)
    threads.join()
    assert len(made) == 16
    assert len(set(made)) == 1
    assert len([*store.list_messages("s")]) == 1


def test_of_many_different_bodies_under_one_request_id_one_is_written(store):
    store.create_session("s", "t")
    threads, made, refused, barrier = Threads(), [], [], threading.Barrier(16)

    def append(number):
        barrier.wait()
        try:
            made.append(store.append_message("s", Draft("user", str(number)), "same"))
        except RequestIdReusedError:
            refused.append(number)

    for number in range(16):
        threads.start(append, number)
    threads.join()
    assert (len(made), len(refused)) == (1, 15)
    assert [placed.item for placed in store.list_messages("s")] == made


def test_a_deleted_session_takes_every_append_with_it(store):
    """Appends race with the deletion: none is answered after it, and none is left behind."""
    for turn in range(20):
        name = f"s{turn}"
        store.create_session(name, "t")
        threads, ends, barrier = Threads(), [], threading.Barrier(4)

        def append(name=name, ends=ends, barrier=barrier):
            barrier.wait()
            for number in range(50):
                try:
                    store.append_message(name, Draft("user", f"orphan {number}"))
                except SessionNotFoundError:
                    ends.append(number)
                    return

        def delete(name=name, barrier=barrier):
            barrier.wait()
            store.delete_session(name)

        for _ in range(3):
            threads.start(append)
        threads.start(delete)
        threads.join()
        with pytest.raises(SessionNotFoundError):
            store.get_session(name)
    assert [*store.search_messages(MessageQuery("orphan", scope="all"))] == []


def test_memory_counts_are_those_of_some_moment(store):
    threads, sizes = Threads(), []

    def write():
        for _ in range(40):
            entry = store.write_memory_entry(EntryDraft("scope", "12345"))
            store.delete_memory_entry(entry.id)

    def count():
        sizes.extend(store.scope_memory_size("scope") for _ in range(60))

    for _ in range(4):
        threads.start(write)
    threads.start(count)
    threads.join()
    assert set(sizes) <= {0, 5, 10, 15, 20}
    assert store.scope_memory_size("scope") == 0
