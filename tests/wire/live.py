"""Live calls as clients make them, each read on a thread of its own."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.store.v1 import store_pb2 as st
from tests.wire import homes

WAIT = 20.0


class Reader:
    """Takes responses on a thread of its own, as a live client does."""

    def __init__(self, call) -> None:
        self.call = call
        self.responses = []
        self.error = None
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for response in self.call:
                self.responses.append(response)
        except grpc.RpcError as error:
            self.error = error
        finally:
            self.is_over.set()

    @property
    def caught_up(self):
        return any(response.caught_up for response in self.responses)

    def end(self):
        """Return the code and reason that the stream ended with, None for OK."""
        assert self.is_over.wait(WAIT)
        if self.error is None:
            return None
        info = error_details_pb2.ErrorInfo()
        status = rpc_status.from_call(self.error)
        status.details[0].Unpack(info)
        return self.error.code(), info.reason

    def close(self):
        self.call.cancel()
        assert self.is_over.wait(WAIT)
        self._thread.join()


@contextmanager
def reading(call):
    reader = Reader(call)
    try:
        yield reader
    finally:
        reader.close()


def contents(reader):
    return [message.content for r in reader.responses for message in r.messages]


def texts(reader):
    return [message.text for r in reader.responses for message in r.page.messages]


def places(reader):
    return [(m.offset, m.index) for r in reader.responses for m in r.page.messages]


def append(flue, *names, session="s"):
    for name in names:
        message = st.Message(role="user", content=name)
        flue.store.AppendMessage(st.AppendMessageRequest(session_id=session, message=message))


def follow_session(flue, **fields):
    return reading(
        flue.store.ListMessages(st.ListMessagesRequest(session_id="s", follow=True, **fields))
    )


def follow_transcript(flue, number=1, **fields):
    request = ai.ReadTranscriptRequest(
        tool="claude", id=homes.session_id(number), follow=True, **fields
    )
    return reading(flue.index.ReadTranscript(request))


def watching(flue, **fields):
    return reading(flue.index.Watch(ai.WatchRequest(**fields)))


def events(reader):
    return [
        (ai.EventType.Name(event.type).removeprefix("EVENT_TYPE_"), event.summary.id)
        for response in reader.responses
        for event in response.events
    ]
