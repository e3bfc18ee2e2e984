"""What hostile or hasty clients leave behind in a server of its own process: nothing."""

from __future__ import annotations

import itertools
import platform
import random
import re
import resource
import select
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2 as st
from flue.store.v1 import store_pb2_grpc
from flue_grpc import limits
from tests.waiting import wait_until
from tests.wire.security.process import running
from tests.wire.security.test_http2 import DATA, HEADERS, PREFACE, SETTINGS, frame, headers, message

STALLED = 500
FREE = 4
# Per database, with the writer's: SQLite keeps what a reader closed for the next to open.
DATABASE_FILES = 2 * (limits.READERS_MAX + 1)
PATIENCE = 40.0
LARGE = 20 << 20
READERS = 8
LIST = "/flue.store.v1.Store/ListMessages"
NO_WINDOW = b"\x00\x04\x00\x00\x00\x00"  # SETTINGS_INITIAL_WINDOW_SIZE of 0

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


class Seen:
    """A product, and what its process holds."""

    def __init__(self, product):
        self.product = product
        self.channel = product.channel(**{"grpc.max_receive_message_length": 36 << 20})
        self.store = store_pb2_grpc.StoreStub(self.channel)
        self.index = agent_index_pb2_grpc.AgentIndexStub(self.channel)
        self._proc = Path(f"/proc/{product.process.pid}")

    def descriptors(self):
        return sum(1 for _ in (self._proc / "fd").iterdir())

    def opened(self):
        """Count what is open by its kind, the files of each database together."""
        counted = Counter()
        for descriptor in (self._proc / "fd").iterdir():
            with suppress(FileNotFoundError):  # it came and went
                name = str(descriptor.readlink())
                database = re.match(r".+[.]db(?=(-wal|-shm)?$)", name)
                counted[database[0] if database else name.partition(":[")[0]] += 1
        return counted

    def leave_free(self, count):
        """Let the process open only ``count`` descriptors more; return the limits it had."""
        taken = {int(path.name) for path in (self._proc / "fd").iterdir()}
        free = (number for number in itertools.count() if number not in taken)
        first_missing = next(itertools.islice(free, count, None))
        pid = self.product.process.pid
        whole = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_missing, whole[1]))
        return whole

    def threads(self):
        return sum(1 for _ in (self._proc / "task").iterdir())

    def wait_until_left(self, before):
        """Wait until nothing is open but what was, and readers that are kept for the next."""
        kept = {name: DATABASE_FILES for name in before if name.endswith(".db")}
        allowed = Counter(before | kept)
        wait_until(lambda: self.opened() <= allowed, tell=lambda: self.opened() - allowed)

    def append(self, text):
        request = st.AppendMessageRequest(
            session_id="s", message=st.Message(role="user", content=text)
        )
        return self.store.AppendMessage(request, timeout=20).message.id

    def lists_again(self):
        """Whether a list finds a place, which others have to have lost."""
        try:
            return list(self.store.ListMessages(st.ListMessagesRequest(session_id="s")))
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            return []

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(str(self.product.socket))
        return client


@pytest.fixture
def seen():
    with running("--stall-seconds", "2") as product:
        made = Seen(product)
        made.store.CreateSession(st.CreateSessionRequest(id="s"))
        made.store.CreateSession(st.CreateSessionRequest(id="large"))
        for number in range(50):
            made.append(f"{number} " + "lorem " * 2000)
        yield made
        made.channel.close()


def list_request():
    return message(st.ListMessagesRequest(session_id="s").SerializeToString())


def call(path, body, settings=b""):
    """A whole call on a fresh connection, in frames."""
    return (
        PREFACE
        + frame(SETTINGS, payload=settings)
        + frame(HEADERS, 4, 1, headers(path))
        + frame(DATA, 1, 1, body)
    )


def test_hundreds_of_readers_that_take_nothing_are_cut_off_and_leave_nothing(seen):
    before, count = seen.opened(), seen.descriptors()
    with ExitStack() as clients:
        for _ in range(STALLED):
            client = clients.enter_context(seen.connect())
            client.sendall(call(LIST, list_request(), NO_WINDOW))
        assert seen.append("meanwhile") == 51
        wait_until(lambda: seen.descriptors() >= count + STALLED)
        wait_until(seen.lists_again)
    seen.wait_until_left(before)
    assert seen.threads() < 100
    _is_well(seen)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators decide themselves")
def test_what_readers_of_large_messages_held_is_given_back(seen):
    large = st.Message(role="user", content="x" * LARGE)
    for _ in range(2):
        request = st.AppendMessageRequest(session_id="large", message=large)
        seen.store.AppendMessage(request, timeout=60)
    asked = message(st.ListMessagesRequest(session_id="large").SerializeToString())
    before = seen.product.memory()
    for _ in range(3):
        with ExitStack() as clients:
            for _ in range(READERS):
                client = clients.enter_context(seen.connect())
                client.sendall(call(LIST, asked, NO_WINDOW))
            wait_until(lambda: seen.product.memory() >= before + READERS * LARGE)
            assert seen.product.peak_memory() <= before + (4 * READERS + 2) * LARGE
        wait_until(lambda: seen.product.memory() <= before + 4 * LARGE)
    _is_well(seen)


def test_frames_that_break_off_anywhere_leave_nothing(seen):
    before = seen.opened()
    whole = call(LIST, list_request())
    for end in range(0, len(whole), 2):
        with seen.connect() as client:
            client.sendall(whole[:end])
    seen.wait_until_left(before)
    _is_well(seen)


def test_thousands_of_calls_broken_off_at_any_moment_leave_nothing(seen):
    before = seen.opened()
    threads = [threading.Thread(target=_break_off, args=(seen, seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen.wait_until_left(before)
    _is_well(seen)


def _break_off(seen, seed):
    dice = random.Random(seed)
    store, index = seen.store, seen.index
    begin = (
        lambda: store.ListMessages(st.ListMessagesRequest(session_id="s")),
        lambda: store.ListMessages(st.ListMessagesRequest(session_id="s", follow=True)),
        lambda: store.SearchMessages(st.SearchMessagesRequest(query="lorem")),
        lambda: store.AppendMessage.future(
            st.AppendMessageRequest(session_id="other", message=st.Message(role="user"))
        ),
        lambda: index.Watch(ai.WatchRequest()),
        lambda: index.Search(ai.SearchRequest(query="hello")),
        lambda: index.Snapshot(ai.SnapshotRequest()),
    )
    for _ in range(600):
        made = dice.choice(begin)()
        until = time.monotonic() + dice.choice((0, 0, 0.001, 0.004))
        while time.monotonic() < until:
            time.sleep(0)
        made.cancel()


def test_without_descriptors_it_goes_on_and_recovers(seen):
    """New connections have to wait; calls on old ones are served or refused in words."""
    last, whole = seen.append("before"), seen.leave_free(FREE)
    clients = [seen.connect() for _ in range(40)]
    for client in clients:
        client.sendall(PREFACE + frame(SETTINGS))
    wait_until(lambda: any(map(is_answered, clients)))
    refusals = []
    for number in range(20):
        try:
            assert seen.append(f"meanwhile {number}") > last
            list(seen.store.ListMessages(st.ListMessagesRequest(session_id="s")))
            list(seen.index.Snapshot(ai.SnapshotRequest()))
        except grpc.RpcError as error:
            refusals.append((error.code(), "/" in error.details()))
    assert set(refusals) <= {(grpc.StatusCode.UNAVAILABLE, False)}
    assert 1 <= sum(map(is_answered, clients)) <= FREE
    resource.prlimit(seen.product.process.pid, resource.RLIMIT_NOFILE, whole)
    wait_until(lambda: all(map(is_answered, clients)))
    for client in clients:
        client.close()
    _is_well(seen)
    (response,) = seen.index.Snapshot(ai.SnapshotRequest())
    assert len(response.summaries) == 1


def is_answered(client):
    """Whether the server has accepted a connection and said the first word on it."""
    return bool(select.select([client], [], [], 0)[0])


def _is_well(seen):
    """A client that connects now is served, and the log tells of no defect."""
    text = f"after {time.monotonic()}"
    with seen.product.channel() as channel:
        grpc.channel_ready_future(channel).result(timeout=PATIENCE)
        store = store_pb2_grpc.StoreStub(channel)
        made = seen.append(text)
        listed = store.ListMessages(st.ListMessagesRequest(session_id="s"), timeout=20)
        assert [m.id for r in listed for m in r.messages if m.content == text] == [made]
    log = seen.product.log.read_text()
    assert "Traceback" not in log
    assert "unexpected" not in log
    assert str(seen.product.directory) not in log.replace(str(seen.product.socket), "")
