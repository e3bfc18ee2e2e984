"""Every RPC of the contract with a request that is served, for tests that spoil it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2

SERVED: dict[str, dict[str, Any]] = {
    "CreateSession": {"title": "made"},
    "GetSession": {"id": "s"},
    "ListSessions": {},
    "UpdateSession": {"id": "s", "title": "again"},
    "DeleteSession": {"id": "gone"},
    "AppendMessage": {"session_id": "s", "message": {"role": "user", "content": "hello"}},
    "AppendMessages": {"session_id": "s", "messages": [{"role": "user", "content": "hello"}]},
    "ListMessages": {"session_id": "s"},
    "SearchMessages": {"query": "hello"},
    "WriteMemoryEntry": {"scope": "notes", "content": "a fact"},
    "UpdateMemoryEntry": {"id": 1, "content": "another fact"},
    "DeleteMemoryEntry": {"id": 999},
    "RecentMemory": {"scopes": ["notes"]},
    "ScopeMemory": {"scope": "notes"},
    "ScopeMemorySize": {"scope": "notes"},
    "SearchMemory": {"scopes": ["notes"], "query": "fact"},
    "Snapshot": {},
    "Resolve": {"tool": "claude", "id": "11111111-2222-4333-8444-555555555555"},
    "ReadPage": {"tool": "claude", "id": "11111111-2222-4333-8444-555555555555"},
    "ReadTranscript": {"tool": "claude", "id": "11111111-2222-4333-8444-555555555555"},
    "ReadMessage": {"tool": "claude", "id": "11111111-2222-4333-8444-555555555555"},
    "Search": {"query": "hello"},
    "Watch": {},
    "Usage": {},
}


@dataclass(frozen=True)
class Rpc:
    """One method, called with bytes so that a test may send what it likes."""

    descriptor: Any

    @property
    def name(self):
        return self.descriptor.name

    @property
    def path(self):
        return f"/{self.descriptor.containing_service.full_name}/{self.name}"

    def request(self):
        return GetMessageClass(self.descriptor.input_type)(**SERVED[self.name])

    def call(self, channel, request, **arguments):
        """Send a message or bytes; return all responses, of Watch the first."""
        data = request if isinstance(request, bytes) else request.SerializeToString()
        arguments.setdefault("timeout", 30)
        parse = GetMessageClass(self.descriptor.output_type).FromString
        if not self.descriptor.server_streaming:
            return [channel.unary_unary(self.path, None, parse)(data, **arguments)]
        stream = channel.unary_stream(self.path, None, parse)(data, **arguments)
        if self.name == "Watch":
            first = next(stream)
            stream.cancel()
            return [first]
        return list(stream)

    def attempt(self, channel, request, **arguments):
        """Call, and return the responses and the error, one of them None."""
        try:
            return self.call(channel, request, **arguments), None
        except grpc.RpcError as error:
            return None, error

    def string_fields(self):
        """Name the request's own string fields, repeated ones too."""
        return [
            field
            for field in self.descriptor.input_type.fields
            if field.type == FieldDescriptor.TYPE_STRING
        ]


RPCS = [
    Rpc(method)
    for file in (store_pb2, agent_index_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def prepare(channel):
    """Make what the requests above speak of."""
    send = {rpc.name: rpc for rpc in RPCS}
    for name in ("s", "gone"):
        request = store_pb2.CreateSessionRequest(id=name)
        error = send["CreateSession"].attempt(channel, request)[1]
        assert error is None or error.code() is grpc.StatusCode.ALREADY_EXISTS
    send["WriteMemoryEntry"].call(channel, send["WriteMemoryEntry"].request())


def everything_said(error):
    """All that an error tells a client: details and trailers, as one string of bytes."""
    said = (error.details() or "").encode()
    for key, value in error.trailing_metadata() or ():
        said += key.encode() + (value if isinstance(value, bytes) else value.encode())
    return said
