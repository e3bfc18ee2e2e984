"""Python clients that never rest: writers, readers, slow readers, cancels, live streams."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.agentindex.v1 import agent_index_pb2_grpc
from flue.store.v1 import store_pb2 as st
from flue.store.v1 import store_pb2_grpc

RECEIVE = [
    ("grpc.max_receive_message_length", 36 << 20),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
]
EXPECTED = {
    grpc.StatusCode.UNAVAILABLE,  # the server is being restarted
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # BUSY: more streams than the budget
    grpc.StatusCode.ABORTED,  # a reader that stalls
    grpc.StatusCode.NOT_FOUND,  # a transcript that was just deleted
    grpc.StatusCode.OUT_OF_RANGE,  # a followed transcript that was rewritten
}
SESSIONS = 8
PAUSE = 0.02


class Load:
    """Threads of clients; each call's time goes to ``times`` by the name of its RPC."""

    def __init__(self, address, home):
        self.address = address
        self.home = home
        self.calls = Counter()
        self.codes = Counter()
        self.surprises = []
        self.acknowledged = Counter()
        self._times = defaultdict(list)
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._threads = []

    def start(self):
        workers = [self._write, self._write, self._read, self._read, self._cancel, self._stall]
        workers += [self._follow, self._watch, self._count]
        for number, worker in enumerate(workers):
            thread = threading.Thread(target=self._loop, args=(worker, number))
            thread.start()
            self._threads.append(thread)

    def stop(self):
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def take_times(self):
        """Return the times since the last call, in milliseconds, and forget them."""
        with self._lock:
            taken, self._times = self._times, defaultdict(list)
        return taken

    def _loop(self, worker, number):
        dice = random.Random(number)
        with grpc.insecure_channel(self.address, RECEIVE) as channel:
            store = store_pb2_grpc.StoreStub(channel)
            index = agent_index_pb2_grpc.AgentIndexStub(channel)
            health = health_pb2_grpc.HealthStub(channel)
            turn = 0
            while not self._ending.is_set():
                turn += 1
                try:
                    worker(store, index, dice, f"{number}-{turn}")
                    if turn % 4 == 0:
                        self._timed("Health", health.Check, health_pb2.HealthCheckRequest())
                except grpc.RpcError as error:
                    self._note(error)
                self._ending.wait(PAUSE)

    def _note(self, error):
        with self._lock:
            self.codes[error.code().name] += 1
            if error.code() not in EXPECTED:
                self.surprises.append(f"{error.code()}: {error.details()}")
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            self._ending.wait(0.1)

    def _timed(self, name, call, request, shares=1.0):
        """Make a call; ``shares`` is by how much its work has grown since the beginning."""
        start = time.perf_counter()
        answer = call(request, timeout=30)
        if hasattr(answer, "__next__"):
            answer = list(answer)
        with self._lock:
            self._times[name].append((time.perf_counter() - start) * 1000 / shares)
            self.calls[name] += 1
        return answer

    def _write(self, store, index, dice, tag):
        """Append with a request id until it is answered, so that each text is there once."""
        session = f"soak-{dice.randrange(SESSIONS)}"
        text = f"text {tag} " + "lorem ipsum " * dice.choice((1, 20, 200))
        request = st.AppendMessageRequest(
            session_id=session, message=st.Message(role="user", content=text), request_id=tag
        )
        while not self._ending.is_set():
            try:
                self._timed("AppendMessage", store.AppendMessage, request)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    self._create(store, session)
                else:
                    self._note(error)
                    self._ending.wait(0.1)
            else:
                with self._lock:
                    self.acknowledged[session] += 1
                return

    def _create(self, store, session):
        request = st.CreateSessionRequest(id=session, title="soak", request_id=f"c-{session}")
        self._timed("CreateSession", store.CreateSession, request)

    def _read(self, store, index, dice, tag):
        rare = st.SearchMessagesRequest(query=dice.choice((f"text {tag}", "nothing-like-it")))
        # Every message matches, and all of them have to be ranked.
        common = st.SearchMessagesRequest(query=dice.choice(("lorem", "ipsum lorem")))
        thousands = max(1.0, sum(self.acknowledged.values()) / 1000)
        self._timed("GetSession", store.GetSession, st.GetSessionRequest(id="soak-0"))
        self._timed("Search", index.Search, ai.SearchRequest(query="timeout", limit=20))
        ranked = ai.SearchRequest(query="timeout", limit=20, mode=ai.SEARCH_MODE_RANKED)
        self._timed("Search ranked", index.Search, ranked)
        self._timed("SearchMessages", store.SearchMessages, rare)
        self._timed("SearchMessages / 1000", store.SearchMessages, common, thousands)
        self._timed("Snapshot", index.Snapshot, ai.SnapshotRequest(limit=50))
        self._timed("Usage", index.Usage, ai.UsageRequest(group_by=[ai.GROUP_BY_MODEL]))
        last = st.ListMessagesRequest(session_id="soak-1", limit=50)
        self._timed("ListMessages", store.ListMessages, last)

    def _cancel(self, store, index, dice, tag):
        """Begin calls of all kinds and break them off at any moment."""
        call = dice.choice(
            (
                lambda: store.ListMessages(st.ListMessagesRequest(session_id="soak-2")),
                lambda: store.ListMessages(
                    st.ListMessagesRequest(session_id="soak-2", follow=True)
                ),
                lambda: index.Search(ai.SearchRequest(query="e")),
                lambda: index.Watch(ai.WatchRequest()),
                lambda: store.GetSession.future(st.GetSessionRequest(id="soak-2")),
            )
        )()
        self._ending.wait(dice.random() * 0.03)
        call.cancel()
        self.calls["cancelled"] += 1

    def _stall(self, store, index, dice, tag):
        """Take one response and then nothing, until the server cuts the call off."""
        call = store.ListMessages(st.ListMessagesRequest(session_id="soak-3"), timeout=20)
        next(call)
        self._ending.wait(dice.random() * 6)
        for _ in call:
            pass
        self.calls["stalled"] += 1

    def _follow(self, store, index, dice, tag):
        request = st.ListMessagesRequest(session_id="soak-4", follow=True)
        for _ in store.ListMessages(request, timeout=5 + dice.random() * 10):
            self.calls["followed"] += 1

    def _watch(self, store, index, dice, tag):
        for _ in index.Watch(ai.WatchRequest(), timeout=5 + dice.random() * 10):
            self.calls["watched"] += 1

    def _count(self, store, index, dice, tag):
        entry = st.WriteMemoryEntryRequest(scope="soak", content=tag, request_id=f"m{tag}")
        made = self._timed("WriteMemoryEntry", store.WriteMemoryEntry, entry)
        recent = st.RecentMemoryRequest(scopes=["soak"])
        self._timed("RecentMemory", store.RecentMemory, recent)
        delete = st.DeleteMemoryEntryRequest(id=made.entry.id)
        self._timed("DeleteMemoryEntry", store.DeleteMemoryEntry, delete)


EXPECTED.add(grpc.StatusCode.DEADLINE_EXCEEDED)  # how live streams end here
