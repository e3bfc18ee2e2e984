"""A server that fails on purpose: what it answers is played from a script."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue.agentindex.v1 import agent_index_pb2_grpc as ai_grpc
from flue.store.v1 import store_pb2 as st
from flue.store.v1 import store_pb2_grpc as st_grpc

BROKEN = (grpc.StatusCode.UNAVAILABLE, "")


def pack(detail):
    packed = Any()
    packed.Pack(detail)
    return packed


def fail(context, code, reason, building=""):
    if not reason:
        context.abort(code, "broken")
    if isinstance(reason, bytes):
        context.set_trailing_metadata((("grpc-status-details-bin", reason),))
        context.abort(code, "foreign")
    metadata = {"building": "true"} if building else {"id": "ses_1"}
    details = [pack(ErrorInfo(reason=reason, domain="flue-grpc", metadata=metadata))]
    details.append(pack(RetryInfo(retry_delay=Duration(nanos=1_000_000))))
    status = Status(code=code.value[0], message="refused", details=details)
    context.abort_with_status(rpc_status.to_status(status))


class Script:
    """Answers per method: each call takes the next list of responses or failures."""

    def __init__(self):
        self.answers = []
        self.requests = []
        self.ended = threading.Event()  # of the latest call

    def play(self, request, context):
        copy = type(request)()
        copy.CopyFrom(request)
        self.requests.append(copy)
        # A call that has ended by now takes no callback.
        self.ended = ended = threading.Event()
        if not context.add_callback(ended.set):
            ended.set()
        for step in self.answers.pop(0):
            if isinstance(step, tuple):
                fail(context, *step)
            elif step == "wait":
                ended.wait(30)
            else:
                yield step

    def play_one(self, request, context):
        return next(self.play(request, context))


def methods(base, script):
    names = [name for name in vars(base) if name[0].isupper()]
    unary = {"CreateSession", "UpdateSession", "AppendMessage", "GetSession", "DeleteSession"}
    played = {n: (script.play_one if n in unary else script.play) for n in names}
    return type("Servicer", (base,), {n: staticmethod(f) for n, f in played.items()})()


@contextmanager
def playing(script, address):
    """Serve the script while the block runs."""
    server = grpc.server(ThreadPoolExecutor(4))
    st_grpc.add_StoreServicer_to_server(methods(st_grpc.StoreServicer, script), server)
    ai_grpc.add_AgentIndexServicer_to_server(methods(ai_grpc.AgentIndexServicer, script), server)
    server.add_insecure_port(address)
    server.start()
    yield
    server.stop(0).wait()


def page(ids, token=""):
    messages = [st.Message(id=i) for i in ids]
    return st.ListMessagesResponse(messages=messages, next_page_token=token)


def transcript(start, offsets, following):
    messages = [ai.Message(offset=o) for o in offsets]
    page = ai.Page(messages=messages, start=start, next=following, revision="r1")
    return ai.ReadTranscriptResponse(page=page)
