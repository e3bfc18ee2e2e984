"""Clients that remember what the server has answered, and what is in doubt.

Each owns its sessions and its memory scope, so what must be there after a crash is
known exactly: what was answered, and for the one call under way all or nothing.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

import grpc

from flue.store.v1 import store_pb2 as pb

MESSAGES, MEMORIES = 120, 40  # of one client; then it deletes
LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@dataclass
class Known:
    """What a client knows to be stored: messages, as id and text, by session; memory by id."""

    sessions: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    memory: dict[int, str] = field(default_factory=dict)


@dataclass
class Doubt:
    """A call without an answer: how to send it again, and what it does to what is known."""

    call: str
    request: object
    apply: object


class Client:
    """Makes calls one after another until the server is gone."""

    def __init__(self, number, seed):
        self.number = number
        self.scope = f"scope-{number}"
        self.known = Known()
        self.doubt = None
        self.answered = 0
        self.errors = []
        self._dice = random.Random(seed)
        self._serial = 0
        self._thread = None

    def start(self, store):
        self._thread = threading.Thread(target=self._run, args=(store,))
        self._thread.start()

    def join(self):
        self._thread.join()

    def _run(self, store):
        while True:
            name, request, apply = self._next()
            try:
                answer = getattr(store, name)(request, timeout=30)
            except grpc.RpcError as error:
                if error.code() not in LOST:
                    self.errors.append(error)
                self.doubt = Doubt(name, request, apply)
                return
            apply(self.known, answer)
            self.answered += 1

    def _next(self):
        self._serial += 1
        return self._dice.choice(self._choices())()

    def _choices(self):
        """What to do next; what has grown large is deleted, so that every check stays quick."""
        if not self.known.sessions:
            return [self._new_session]
        if len(self.known.memory) > MEMORIES:
            return [self._forget]
        if sum(map(len, self.known.sessions.values())) > MESSAGES:
            return [self._delete_session]
        return [
            *[self._append] * 8,
            *[self._batch] * 3,
            *[self._remember] * 2,
            self._forget,
            self._new_session,
            self._delete_session,
        ]

    def _text(self):
        size = self._dice.choice((10, 300, 300, 300, 2_000, 2_000, 2_000, 20_000))
        return f"c{self.number}n{self._serial} " + "lorem " * (size // 6)

    def _id(self):
        return f"r-{self.number}-{self._serial}"

    def _session(self):
        return self._dice.choice(sorted(self.known.sessions))

    def _new_session(self):
        name = f"s-{self.number}-{self._serial}"
        request = pb.CreateSessionRequest(id=name, title=name, request_id=self._id())
        return "CreateSession", request, lambda known, _: known.sessions.setdefault(name, [])

    def _append(self):
        name, text = self._session(), self._text()
        request = pb.AppendMessageRequest(
            session_id=name,
            message=pb.Message(role="user", content=text),
            request_id=self._id(),
        )

        def apply(known, answer):
            known.sessions[name].append((answer.message.id, text))

        return "AppendMessage", request, apply

    def _batch(self):
        name, texts = self._session(), [f"{self._text()}.{n}" for n in range(4)]
        request = pb.AppendMessagesRequest(
            session_id=name,
            messages=[pb.Message(role="assistant", content=text) for text in texts],
            request_id=self._id(),
        )

        def apply(known, answer):
            ids = [message.id for message in answer.messages]
            known.sessions[name].extend(zip(ids, texts, strict=True))

        return "AppendMessages", request, apply

    def _remember(self):
        text = self._text()
        request = pb.WriteMemoryEntryRequest(scope=self.scope, content=text, request_id=self._id())

        def apply(known, answer):
            known.memory[answer.entry.id] = text

        return "WriteMemoryEntry", request, apply

    def _forget(self):
        if not self.known.memory:
            return self._remember()
        number = self._dice.choice(sorted(self.known.memory))
        request = pb.DeleteMemoryEntryRequest(id=number)
        return "DeleteMemoryEntry", request, lambda known, _: known.memory.pop(number)

    def _delete_session(self):
        name = max(self.known.sessions, key=lambda name: len(self.known.sessions[name]))
        request = pb.DeleteSessionRequest(id=name)
        return "DeleteSession", request, lambda known, _: known.sessions.pop(name)


def stored(store, client):
    """Read what the server has of a client."""
    sessions = {
        session.id: [
            (message.id, message.content)
            for response in store.ListMessages(pb.ListMessagesRequest(session_id=session.id))
            for message in response.messages
        ]
        for response in store.ListSessions(pb.ListSessionsRequest())
        for session in response.sessions
        if session.id.startswith(f"s-{client.number}-")
    }
    memory = {
        entry.id: entry.content
        for response in store.ScopeMemory(pb.ScopeMemoryRequest(scope=client.scope))
        for entry in response.entries
    }
    return Known(sessions, memory)


def settle(store, client):
    """Check what a crash has left of a client, then send the call in doubt again.

    It must be there whole or not at all; sent again it must be there once, and under the
    ids that the answer to the repeat gives.
    """
    found, doubt = stored(store, client), client.doubt
    client.doubt = None
    if found == client.known:
        was_written = False
    else:
        assert doubt is not None, "something is stored that nobody has sent"
        was_written = True
    if doubt is None:
        return
    try:
        answer = getattr(store, doubt.call)(doubt.request, timeout=30)
    except grpc.RpcError as error:
        # Only calls without a request id may find their work done.
        is_done = was_written and error.code() is grpc.StatusCode.NOT_FOUND
        if not (is_done and doubt.call.startswith("Delete")):
            raise
        answer = None
    doubt.apply(client.known, answer)
    again = stored(store, client)
    assert again == client.known
    if was_written:
        assert found == client.known, "a repeat was written twice, or half was there before"
